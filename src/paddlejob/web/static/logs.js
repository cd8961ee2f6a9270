// The logs of a job: the end of one replica's log or of all, what is added, and lines that match.

import { coloured } from "./ansi.js";
import { download, get, jobPath, Stream } from "./api.js";
import { h, replace } from "./dom.js";
import { bytes } from "./format.js";
import { t } from "./i18n.js";
import { jobHead } from "./job.js";

const MOST_LINES = 5000;
const LEAST_MS_BETWEEN_SEARCHES = 2000;
const state = { wrap: true };

export function logsPage(main, row, replica = "") {
  const chosen = { replica, attempt: "" };
  let stream = null;
  let following = true;
  let searching = 0;
  const lines = h("div", { class: "lines", role: "log", "aria-live": "off", tabindex: "0" });
  const note = h("p", { class: "muted note", role: "status" });
  const replicas = h("select", { "aria-label": t("replica"), onchange: () => { chosen.replica = replicas.value; reload(); } });
  const attempts = h("select", { "aria-label": t("attempt"), onchange: () => { chosen.attempt = attempts.value; fill(); reload(); } });
  const search = h("input", { type: "search", class: "search", placeholder: t("search"), "aria-label": t("search"), oninput: () => later() });
  const follow = h("button", { "aria-pressed": "true", class: "toggle", onclick: () => setFollowing(!following) }, t("follow"));
  const wrap = h("button", { "aria-pressed": String(state.wrap), class: "toggle", onclick: () => { state.wrap = !state.wrap; wrapLines(); } }, t("wrap"));
  const saving = h("button", { onclick: save }, t("download"));
  const bars = new Map();
  let known = [];
  let timer = 0;

  const query = () => new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
  const base = `${jobPath(row)}/logs`;
  const prefixed = () => !chosen.replica && new Set(known.map((log) => log.replica)).size > 1;

  function wrapLines() {
    lines.classList.toggle("wrap", state.wrap);
    wrap.setAttribute("aria-pressed", String(state.wrap));
  }

  function setFollowing(on) {
    following = on;
    follow.setAttribute("aria-pressed", String(on));
    if (on && search.value) find();
    else if (on) lines.scrollTop = lines.scrollHeight;
  }

  async function save() {
    saving.disabled = true;
    note.textContent = t("downloading");
    note.textContent = await download(`${base}/download?${query()}`).then(() => "", (problem) => problem.message);
    saving.disabled = false;
  }

  async function fill() {
    known = await get(base).catch(() => []);
    const numbers = [...new Set(known.map((log) => log.attempt))].sort((a, b) => b - a);
    replace(attempts, h("option", { value: "" }, t("latest")), numbers.map((number) => h("option", { value: number }, `${t("attempt")} ${number}`)));
    attempts.value = chosen.attempt;
    const current = chosen.attempt ? Number(chosen.attempt) : numbers[0];
    const names = [...new Set(known.filter((log) => log.attempt === current).map((log) => log.replica))];
    if (chosen.replica && !names.includes(chosen.replica)) names.push(chosen.replica);
    replace(replicas, h("option", { value: "" }, t("allReplicas")), names.map((name) => h("option", { value: name }, name)));
    replicas.value = chosen.replica;
  }

  const later = () => { clearTimeout(timer); timer = setTimeout(() => (search.value ? find() : reload()), 250); };

  async function find() {
    stop();
    clearTimeout(timer);
    const turn = (searching += 1);
    const began = performance.now();
    try {
      const answer = await get(`${base}/search?${query()}&q=${encodeURIComponent(search.value)}`);
      if (turn === searching) showFound(answer);
    } catch (problem) {
      if (turn === searching) note.textContent = problem.message;
    }
    if (turn === searching) searchAgain(performance.now() - began);
  }

  function showFound(answer) {
    const rows = answer.found.map((match) => line(match.replica, match.text, match.spans, match.line));
    if (rows.length !== lines.childElementCount || rows.some((row, index) => !row.isEqualNode(lines.children[index]))) replace(lines, rows);
    note.textContent = !rows.length ? t("noMatches") : answer.complete ? t("matches", rows.length, bytes(answer.searched)) : t("moreMatches", rows.length);
  }

  // Lines that match may still be printed. A long log is searched less often, so that this costs a tenth of the time at most.
  function searchAgain(took) {
    const again = () => (document.hidden ? searchAgain(took) : find());
    if (following) timer = setTimeout(again, Math.max(LEAST_MS_BETWEEN_SEARCHES, 10 * took));
  }

  function line(name, text, spans, number) {
    return h("div", { class: "line" }, number ? h("span", { class: "muted number" }, String(number)) : null, prefixed() ? h("span", { class: "from" }, name) : null, h("span", { class: "text" }, coloured(text, spans)));
  }

  function add(pieces, first) {
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    const added = document.createDocumentFragment();
    for (const element of pieces.map((piece) => bars.get(piece.replica))) element?.remove();
    for (const piece of pieces) {
      if (piece.skipped) added.append(h("div", { class: "line muted" }, t("skipped", bytes(piece.skipped))));
      for (const text of piece.lines) added.append(line(piece.replica, text));
      if (piece.bar) bars.set(piece.replica, line(piece.replica, piece.bar));
      else bars.delete(piece.replica);
    }
    lines.append(added, ...bars.values());
    while (lines.childElementCount > MOST_LINES) lines.firstElementChild.remove();
    note.textContent = lines.childElementCount ? "" : t("noLogs");
    if (following && (atEnd || first)) lines.scrollTop = lines.scrollHeight;
  }

  async function reload() {
    stop();
    const turn = (searching += 1);
    if (search.value) return find();
    replace(lines);
    note.textContent = "";
    await fill();
    if (turn !== searching) return;
    let first = true;
    stream = new Stream(`${base}/stream?${query()}`, {
      begin: () => { first = true; },
      message: (pieces) => {
        if (first) replace(lines);
        if (first) bars.clear();
        if (!prefixed() && pieces.some((piece) => !known.some((log) => log.replica === piece.replica))) fill();
        add(pieces, first);
        first = false;
      },
      problem: (message) => { note.textContent = message; },
      end: () => { note.textContent = lines.childElementCount ? t("ended") : t("noLogs"); },
    }).start();
  }

  function stop() {
    if (stream) stream.close();
    stream = null;
  }

  lines.addEventListener("wheel", (event) => { if (event.deltaY < 0) setFollowing(false); }, { passive: true });
  replace(main, jobHead(row, "logs"), h("div", { class: "toolbar" }, h("h1", { class: "small" }, row.name), replicas, attempts, search, follow, wrap, saving), note, lines);
  wrapLines();
  reload();
  return { close: () => { clearTimeout(timer); stop(); searching += 1; }, search };
}
