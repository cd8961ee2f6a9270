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

function nodes(found) {
  const names = [...new Set(found.flatMap((node) => Object.keys(node.capacity)))];
  const cells = (node) => [node.name, node.state, ...names.map((name) => (name in node.capacity ? `${amount(name, node.held[name] || 0)} / ${amount(name, node.capacity[name])}` : ""))];
  return [h("h3", {}, t("nodes")), h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, [t("name"), t("state"), ...names].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, found.map((node) => h("tr", {}, cells(node).map((cell) => h("td", { class: "num" }, cell)))))))];
}

function queues(found) {
  return [h("h3", {}, t("queues")), h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, found.map((queue) => h("tr", {}, h("td", {}, queue.kind), h("td", {}, queue.name), h("td", { class: "num" }, queue.detail))))))];
}
