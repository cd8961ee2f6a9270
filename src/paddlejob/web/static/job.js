// The page of a job.

import { get, jobPath, Stream } from "./api.js";
import { actionButtons } from "./actions.js";
import { Curves } from "./curves.js";
import { h, refresh, replace } from "./dom.js";
import { bytes, clock, duration, now, number } from "./format.js";
import { t } from "./i18n.js";
import { badge, bar, jobLink, since } from "./widgets.js";

const REDRAW = 5;
const AGAIN = 2000;
const OVER = new Set(["Completed", "Failed", "Suspended", "Interrupted", "Damaged"]);

export function jobHead(row, page) {
  const tab = (name, link) => h("a", { href: link, "aria-current": page === name ? "page" : null, class: "tab" }, t(name));
  return h("nav", { class: "tabs", "aria-label": row.name }, h("a", { href: "#/", class: "tab back" }, `← ${t("back")}`), tab("overview", jobLink(row)), tab("logs", jobLink(row, "/logs")));
}

export function jobPage(main, row) {
  const parts = {};
  for (const name of ["head", "attempts", "replicas", "events"]) parts[name] = h("section", { id: name });
  const file = h("pre", {});
  const curves = new Curves(row);
  replace(main, jobHead(row, "overview"), parts.head, curves.element, parts.attempts, parts.replicas, parts.events, h("section", {}, h("details", { id: "file" }, h("summary", {}, t("file")), file), plan(row)));
  let said = "";
  let last = null;
  let stream = null;
  let again = 0;

  const show = (detail) => {
    last = detail;
    curves.active = !OVER.has(detail.row.phase);
    if (!curves.active && parts.head.dataset.active === "true") curves.update();
    parts.head.dataset.active = String(curves.active);
    const done = (message, action) => { said = message; if (action === "delete") location.hash = "#/"; else show(last); };
    const { file: text, replicas: pods, events: list, ...head } = detail;
    refresh(parts.head, [head, said], () => [headline(detail, done), said ? h("p", { class: "notice", role: "status" }, said) : null].flat());
    refresh(parts.attempts, [detail.attempts, detail.row.phase, Math.floor(now() / REDRAW)], () => [h("h2", {}, t("attempts")), timeline(detail)]);
    refresh(parts.replicas, pods, () => [h("h2", {}, t("replicas")), replicas(detail)]);
    refresh(parts.events, list, () => [h("h2", {}, t("events")), events(detail)]);
    if (file.textContent !== text) file.textContent = text;
  };
  // A job that was deleted may be started again under its name.
  const problem = (message) => {
    curves.active = false;
    for (const name of ["attempts", "replicas", "events"]) refresh(parts[name], null, () => []);
    refresh(parts.head, message, () => [h("h1", {}, row.name), h("p", { class: "notice warning" }, message)]);
    file.textContent = "";
    again = setTimeout(open, AGAIN);
  };
  const open = () => { stream = new Stream(`${jobPath(row)}/stream`, { message: show, problem }).start(); };
  open();
  return { close: () => { clearTimeout(again); stream.close(); curves.close(); }, logs: jobLink(row, "/logs") };
}

// Built on the server when it is opened, because a large job has many objects.
function plan(row) {
  const note = h("p", { class: "muted" });
  const text = h("pre", {});
  const details = h("details", { id: "plan" }, h("summary", {}, t("plan")), note, text);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const answer = await get(`${jobPath(row)}/plan`);
      text.textContent = answer.text;
      note.textContent = answer.shown < answer.objects ? t("planPart", answer.shown, answer.objects) : "";
    } catch (error) {
      note.textContent = error.message;
    }
  });
  return details;
}

function headline(detail, done) {
  const { row } = detail;
  const running = row.phase === "Running" && !row.message;
  const [first, ...rest] = detail.message.split("\n");
  return [
    h("div", { class: "title" }, h("h1", {}, row.name), badge(row.phase), h("span", { class: "muted" }, [t(row.target), row.namespace, row.mode].filter(Boolean).join(" · ")), h("span", { class: "actions" }, actionButtons(detail, done))),
    first && !running ? h("p", { class: `why ${row.phase === "Failed" ? "failed" : ""}`, id: "why" }, detail.reason ? h("b", {}, `${detail.reason}: `) : null, first) : null,
    rest.length ? h("details", {}, h("summary", {}, t("message")), h("pre", {}, strip(rest.join("\n")))) : null,
    row.fraction !== null || row.progress ? h("div", { class: "big-progress" }, bar(row.fraction, row.progress)) : null,
    h("dl", { class: "facts" }, facts(detail)),
    running ? null : h("p", { class: "muted next" }, `${t("next")} `, detail.next),
  ];
}

const strip = (text) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "");

function facts(detail) {
  const { row } = detail;
  const began = row.started || row.created;
  const entries = [
    ...Object.entries(detail.metrics).map(([name, value]) => [name.replaceAll("_", " "), number(value)]),
    [t("eta"), row.eta && row.eta > now() ? since(row.eta, "left") : null],
    [t("runTime"), began ? (row.ended ? duration(row.ended - began) : since(began)) : null],
    [t("lastOutput"), detail.last_output && row.phase === "Running" ? since(detail.last_output, "ago") : null],
    [t("checkpoint"), detail.checkpoint === null ? null : t("atStep", detail.checkpoint)],
    [t("goodput"), detail.goodput === null ? null : `${detail.goodput}%`],
    [t("Attempt"), detail.attempt ? String(detail.attempt) : null],
    [t("restarts"), String(row.restarts)],
    [t("disruptions"), row.disruptions ? String(row.disruptions) : null],
  ];
  return entries.filter(([, value]) => value !== null).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, value)));
}

function timeline(detail) {
  if (!detail.attempts.length) return h("p", { class: "empty" }, t("noAttempts"));
  const known = detail.attempts.filter((attempt) => attempt.start);
  const first = Math.min(...known.map((attempt) => attempt.start));
  const last = Math.max(...known.map((attempt) => attempt.end || now()));
  const missing = detail.attempts[0].number - 1;
  return h(
    "ol",
    { class: "timeline" },
    missing ? h("li", {}, h("span", { class: "muted" }, t("earlier", missing))) : null,
    detail.attempts.map((attempt, index) => attemptRow(attempt, detail.attempts[index - 1], { first, last, span: Math.max(1, last - first), over: OVER.has(detail.row.phase) })),
  );
}

function attemptRow(attempt, before, scale) {
  const end = attempt.end || (scale.over ? scale.last : now());
  const stripe = h("i", { class: attempt.failed ? "bad" : attempt.end ? "good" : "live" });
  if (attempt.start) {
    stripe.style.marginLeft = `${((attempt.start - scale.first) / scale.span) * 100}%`;
    stripe.style.width = `${Math.max(0.6, ((end - attempt.start) / scale.span) * 100)}%`;
  }
  const when = attempt.start ? `${clock(attempt.start)} · ${attempt.end ? duration(attempt.end - attempt.start) : t("running")}` : "";
  const resized = before && before.workers !== attempt.workers && attempt.workers;
  const size = resized ? t("resized", before.workers, attempt.workers) : attempt.workers ? t("size", attempt.workers) : "";
  const why = attempt.reason === "Running" ? "" : attempt.message;
  return h(
    "li",
    { "data-attempt": attempt.number },
    h("span", { class: "which" }, `${t("Attempt")} ${attempt.number}`, h("span", { class: resized ? "size changed" : "size muted" }, size)),
    h("span", { class: "muted num when" }, when),
    h("span", { class: "track" }, stripe),
    h("span", { class: "reason" }, why ? [attempt.reason ? h("b", {}, `${t(attempt.reason)} `) : null, why] : null),
  );
}

function replicas(detail) {
  const gpus = detail.replicas.some((replica) => replica.usage?.gpu !== null && replica.usage?.gpu !== undefined);
  const heads = ["replica", "state", "cpu", "memory", ...(gpus ? ["gpu"] : []), "where", "address", "exit"];
  const cells = (replica) => [
    h("a", { href: jobLink(detail.row, `/logs/${replica.name}`) }, replica.name),
    badge(replica.state),
    replica.usage?.cpu === null || !replica.usage ? "" : replica.usage.cpu.toFixed(2),
    replica.usage?.memory ? bytes(replica.usage.memory) : "",
    ...(gpus ? [replica.usage?.gpu === null || !replica.usage ? "" : `${Math.round(replica.usage.gpu)}%`] : []),
    replica.where,
    replica.address,
    replica.exit_code === null ? "" : String(replica.exit_code),
  ];
  const body = detail.replicas.map((replica) => [h("tr", { "data-replica": replica.name }, cells(replica).map((cell) => h("td", { class: "num" }, cell))), replica.note ? h("tr", {}, h("td", { colspan: heads.length, class: "why" }, replica.note)) : null]);
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((key) => h("th", { scope: "col" }, t(key))))), h("tbody", {}, body.flat())));
}

function events(detail) {
  if (!detail.events.length) return h("p", { class: "empty" }, t("noEvents"));
  const rows = [...detail.events].reverse().map((event) => {
    const [first, ...rest] = event.message.split("\n");
    const message = rest.length ? h("details", {}, h("summary", {}, first), h("pre", {}, strip(rest.join("\n")))) : first;
    return h("tr", { class: event.warning ? "warning" : "" }, h("td", { class: "num" }, event.time ? clock(Date.parse(event.time) / 1000) : ""), h("td", {}, event.warning ? "⚠ " : "", event.reason), h("td", {}, message));
  });
  return h("div", { class: "scroll" }, h("table", { class: "events" }, h("thead", {}, h("tr", {}, ["time", "reason", "message"].map((key) => h("th", { scope: "col" }, t(key))))), h("tbody", {}, rows)));
}
