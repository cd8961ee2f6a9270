// The list of jobs. A row is built again only when its job has changed, and rows outside the window are not laid out, so
// that 500 of them stay fluent. That needs rows that are no table rows for the browser, so the roles say what they are.

import { get, Stream } from "./api.js";
import { h, replace } from "./dom.js";
import { number } from "./format.js";
import { t } from "./i18n.js";
import { badge, bar, jobLink, since, sparkline } from "./widgets.js";

const PHASES = ["Running", "Starting", "Restarting", "Pending", "Suspended", "Interrupted", "Failed", "Completed"];
const ACTIVE = new Set(["Running", "Starting", "Restarting", "Pending", "Created", "Deleting"]);
const filters = { text: "", phase: "", namespace: "", target: "" };

export function jobsPage(main) {
  const rows = new Map();
  let revision = 0;
  let targets = [];
  const body = h("tbody", { role: "rowgroup" });
  const empty = h("p", { class: "empty", hidden: true });
  const notices = h("div", {});
  const count = h("span", { class: "muted count", role: "status" });
  const search = h("input", {
    type: "search", class: "search", placeholder: t("filter"), "aria-label": t("filter"), value: filters.text,
    oninput: (event) => { filters.text = event.target.value; show(); },
  });
  const choice = (name) => h("select", { "aria-label": t(name), onchange: (event) => { filters[name] = event.target.value; show(); } });
  const selects = { phase: choice("phase"), namespace: choice("namespace"), target: choice("target") };
  const head = ["phase", "name", "progress", "loss", "replicas", "restarts", "age"].map((key) => h("th", { scope: "col", role: "columnheader" }, t(key)));
  const table = h("table", { class: "jobs", role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)), body);
  replace(main, h("div", { class: "toolbar" }, search, Object.values(selects), count), notices, table, empty);

  const key = (row) => [row.target, row.namespace, row.name].join("/");

  function apply(changes) {
    revision = changes.revision;
    const focused = document.activeElement?.closest("tr[data-link]")?.dataset.link;
    if (changes.targets.length) targets = changes.targets;
    for (const removed of changes.removed) {
      rows.get(removed.join("/"))?.element.remove();
      rows.delete(removed.join("/"));
    }
    for (const row of changes.rows) {
      const known = rows.get(key(row));
      const element = jobRow(row, targets.length > 1);
      if (known) known.element.replaceWith(element);
      rows.set(key(row), { row, element });
    }
    if (changes.rows.length || changes.removed.length) order();
    show();
    if (focused && !body.contains(document.activeElement)) body.querySelector(`tr[data-link="${CSS.escape(focused)}"]`)?.focus();
  }

  function order() {
    const sorted = [...rows.values()].sort((a, b) => rank(a.row) - rank(b.row) || (b.row.created || 0) - (a.row.created || 0) || a.row.name.localeCompare(b.row.name));
    let last = null;
    for (const { element } of sorted) {
      const expected = last ? last.nextSibling : body.firstChild;
      if (expected !== element) body.insertBefore(element, expected);
      last = element;
    }
  }

  function show() {
    options();
    let shown = 0;
    for (const { row, element } of rows.values()) {
      element.hidden = !matches(row);
      if (!element.hidden) shown += 1;
    }
    count.textContent = t("total", shown);
    empty.hidden = shown > 0;
    table.hidden = shown === 0;
    replace(empty, rows.size ? t("noMatch") : [t("noJobs"), " ", h("code", {}, "pdj run train.py --workers 2")]);
    const broken = targets.filter((target) => target.error);
    replace(notices, broken.map((target) => h("p", { class: "notice warning" }, `${target.title}: ${target.error}. ${t("stale")}`)));
  }

  function options() {
    const known = [...rows.values()].map(({ row }) => row);
    const other = [...new Set(known.map((row) => row.phase))].filter((phase) => !PHASES.includes(phase));
    setOptions(selects.phase, [["", t("allPhases")], ...[...PHASES, ...other].map((phase) => [phase, t(phase)])], filters.phase);
    const namespaces = [...new Set(known.map((row) => row.namespace))].sort();
    setOptions(selects.namespace, [["", t("allNamespaces")], ...namespaces.map((name) => [name, name])], filters.namespace);
    selects.namespace.hidden = namespaces.length < 2 && !filters.namespace;
    setOptions(selects.target, [["", t("allTargets")], ...targets.map((target) => [target.name, t(target.name)])], filters.target);
    selects.target.hidden = targets.length < 2;
  }

  get("/api/jobs").then((answer) => {
    if (stream.closed) return;
    document.body.classList.toggle("read-only", answer.readOnly);
    apply(answer.changes);
    stream.start();
  }, (problem) => replace(notices, h("p", { class: "notice warning" }, problem.message)));
  const stream = new Stream(() => `/api/stream?since=${revision}`, { message: apply });
  return { close: () => stream.close(), search };
}

function setOptions(select, entries, chosen) {
  const text = JSON.stringify(entries);
  if (select.dataset.entries !== text) {
    select.dataset.entries = text;
    replace(select, entries.map(([value, label]) => h("option", { value }, label)));
  }
  select.value = chosen;
}

const rank = (row) => (ACTIVE.has(row.phase) ? 0 : 1);

function matches(row) {
  const text = filters.text.toLowerCase();
  return (
    (!filters.phase || row.phase === filters.phase) &&
    (!filters.namespace || row.namespace === filters.namespace) &&
    (!filters.target || row.target === filters.target) &&
    (!text || `${row.namespace}/${row.name} ${row.message}`.toLowerCase().includes(text))
  );
}

function jobRow(row, several) {
  const where = [several ? t(row.target) : "", row.namespace === "default" ? "" : row.namespace].filter(Boolean).join(" · ");
  const ready = Object.entries(row.ready || {}).map(([role, value]) => `${role} ${value || "–"}`).join(", ");
  const restarts = row.restarts + row.disruptions;
  const link = jobLink(row);
  return h(
    "tr",
    { tabindex: "0", role: "row", "data-job": row.name, "data-phase": row.phase, "data-link": link, onclick: (event) => { if (event.target.tagName !== "A") location.hash = link; } },
    h("td", { role: "cell", class: "cell-phase" }, badge(row.phase)),
    h("td", { role: "cell", class: "cell-name" }, h("a", { href: link, tabindex: "-1" }, row.name), where ? h("span", { class: "muted where" }, where) : null, row.message && row.phase !== "Completed" ? h("div", { class: "why", title: row.message }, row.message) : null),
    h("td", { role: "cell", class: "cell-progress" }, row.fraction !== null || row.progress ? bar(row.fraction, row.progress) : null),
    h("td", { role: "cell", class: "cell-loss num" }, sparkline(row.spark), row.loss === null ? null : h("span", {}, number(row.loss))),
    h("td", { role: "cell", class: "cell-ready num" }, ready),
    h("td", { role: "cell", class: "cell-restarts num" }, restarts ? String(restarts) : ""),
    h("td", { role: "cell", class: "cell-age num" }, since(row.created)),
  );
}
