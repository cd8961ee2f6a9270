// What this machine and the cluster have, and who holds it.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { bytes, number } from "./format.js";
import { t } from "./i18n.js";

const PAUSE = 2000;

export function machinePage(main) {
  let closed = false;
  let timer = 0;
  const body = h("div", {});
  replace(main, body);

  async function update() {
    if (!document.hidden) {
      try {
        const answer = await get("/api/machine");
        if (!closed) replace(body, answer.map(machine));
      } catch (problem) {
        if (!closed) replace(body, h("p", { class: "notice warning" }, problem.message));
      }
    }
    if (!closed) timer = setTimeout(update, PAUSE);
  }

  update();
  return { close: () => { closed = true; clearTimeout(timer); } };
}

const amount = (resource, value) => (resource === "memory" ? bytes(value) : number(Number(value.toFixed(2))));

function machine(one) {
  return h(
    "section",
    { class: "machine", "data-machine": one.name },
    h("h2", {}, one.title),
    one.note ? h("p", { class: "muted" }, one.note) : null,
    h("div", { class: "meters" }, one.resources.map(meter)),
    one.gpus.length ? gpus(one.gpus) : null,
    one.nodes.length ? nodes(one.nodes) : null,
    one.queues.length ? queues(one.queues) : null,
  );
}

function meter(resource) {
  const { name, capacity, held, used } = resource;
  const percent = (value) => `${capacity ? Math.min(100, (value / capacity) * 100) : 0}%`;
  const reserved = h("i", { class: "held" });
  reserved.style.width = percent(held);
  const live = h("i", { class: "used" });
  live.style.width = percent(used || 0);
  const holders = Object.entries(resource.holders).map(([job, value]) => `${job} ${amount(name, value)}`);
  return h(
    "div",
    { class: "meter", "data-resource": name },
    h("h3", {}, name === "cpu" ? "CPU" : name === "memory" ? t("memory") : name),
    h("div", { class: "stack" }, reserved),
    used === null ? null : h("div", { class: "stack thin" }, live),
    h("p", { class: "num" }, `${t("held")} ${amount(name, held)} / ${amount(name, capacity)}`, used === null ? "" : ` · ${t("used")} ${amount(name, used)}`),
    h("p", { class: "muted" }, `${t("holders")}: ${holders.length ? holders.join(", ") : t("none")}`),
  );
}

function table(title, heads, rows) {
  const head = h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name))));
  const body = rows.map((cells) => h("tr", { "data-name": typeof cells[0] === "string" ? cells[0] : null }, cells.map((cell) => h("td", { class: "num" }, cell))));
  return [h("h3", {}, title), h("div", { class: "scroll" }, h("table", {}, head, h("tbody", {}, body)))];
}

function gpus(found) {
  const memory = (gpu) => (gpu.capacity === null ? "" : `${bytes(gpu.memory)} / ${bytes(gpu.capacity)}`);
  const rows = found.map((gpu) => [gpu.index, gpu.name, gpu.percent === null ? "" : gauge(gpu.percent), memory(gpu), gpu.holder || t("free")]);
  return table(t("devices"), ["#", t("name"), t("used"), t("memory"), t("holders")], rows);
}

function gauge(percent) {
  const filled = h("i", { class: "used" });
  filled.style.width = `${Math.min(100, percent)}%`;
  return h("div", { class: "gauge" }, h("div", { class: "stack" }, filled), `${Math.round(percent)}%`);
}

function nodes(found) {
  const names = [...new Set(found.flatMap((node) => Object.keys(node.capacity)))];
  const cells = (node) => [node.name, node.state, ...names.map((name) => (name in node.capacity ? `${amount(name, node.held[name] || 0)} / ${amount(name, node.capacity[name])}` : ""))];
  return table(t("nodes"), [t("name"), t("state"), ...names], found.map(cells));
}

function queues(found) {
  const part = ([name, [used, limit]]) => `${name} ${amount(name, used)}${limit === null ? "" : ` / ${amount(name, limit)}`}`;
  const rows = found.map((queue) => [queue.name, queue.kind, queue.state, Object.entries(queue.resources).map(part).join(", "), String(queue.running), String(queue.pending), queue.waiting.join(", ")]);
  return table(t("queues"), [t("name"), t("scheduler"), t("state"), t("used"), t("Running"), t("Pending"), t("waitingJobs")], rows);
}
