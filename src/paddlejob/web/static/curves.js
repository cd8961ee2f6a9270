// The curves of a job: one chart for each metric, one curve for each attempt, and those of other jobs on top.

import { get, jobPath } from "./api.js";
import { Chart } from "./chart.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";

const PAUSE = 1000;
const IDLE = 10000;

export class Curves {
  constructor(row) {
    this.row = row;
    this.charts = new Map();
    this.others = new Map();
    this.grid = h("div", { class: "charts" });
    this.empty = h("p", { class: "empty" }, t("noCurves"));
    this.select = h("select", { "aria-label": t("compare"), onchange: () => this.toggle() });
    this.chips = h("span", { class: "chips" });
    this.element = h("section", { id: "curves" }, h("div", { class: "section-head" }, h("h2", {}, t("curves")), this.chips, this.select), this.empty, this.grid);
    this.fill();
    this.update();
  }

  async fill() {
    const { changes } = await get("/api/jobs").catch(() => ({ changes: { rows: [] } }));
    const others = changes.rows.filter((row) => jobPath(row) !== jobPath(this.row) && (row.progress || row.loss !== null));
    this.rows = others.sort((a, b) => (b.created || 0) - (a.created || 0)).slice(0, 200);
    replace(this.select, h("option", { value: "" }, `${t("compare")} …`), this.rows.map((row, index) => h("option", { value: index }, `${row.name}${row.namespace === "default" ? "" : ` (${row.namespace})`}`)));
    this.select.hidden = !others.length;
  }

  toggle() {
    const row = this.rows[Number(this.select.value)];
    if (this.select.value !== "" && row) this.others.set(jobPath(row), { row, series: null });
    this.select.value = "";
    this.update();
  }

  async update() {
    clearTimeout(this.timer);
    if (this.closed) return;
    if (!document.hidden) {
      const series = await get(`${jobPath(this.row)}/series`).catch(() => null);
      await Promise.all([...this.others.values()].map(async (other) => { other.series = await get(`${jobPath(other.row)}/series`).catch(() => other.series); }));
      if (this.closed) return;
      if (series) this.show(series);
    }
    this.timer = setTimeout(() => this.update(), this.active ? PAUSE : IDLE);
  }

  show(series) {
    const names = Object.keys(series.metrics);
    this.empty.hidden = names.length > 0;
    for (const [name, chart] of this.charts) if (!names.includes(name)) this.remove(name, chart);
    for (const name of names) {
      if (!this.charts.has(name)) {
        const chart = new Chart(name);
        this.charts.set(name, chart);
        this.grid.append(chart.element);
      }
      this.charts.get(name).show(this.curves(name, series), t(series.axis === "epoch" ? "epoch" : "step"));
    }
    replace(this.chips, [...this.others.entries()].map(([key, { row }]) => h("button", { class: "chip", title: t("close"), onclick: () => { this.others.delete(key); this.update(); } }, `${row.name} ✕`)));
  }

  // A job that runs again starts with no curves.
  remove(name, chart) {
    chart.close();
    chart.element.remove();
    this.charts.delete(name);
  }

  curves(name, series) {
    const own = series.metrics[name].map((curve, index) => ({ ...curve, colour: index, label: `${this.others.size ? `${this.row.name} · ` : ""}${t("attempt")} ${curve.attempt}` }));
    let colour = own.length;
    for (const { row, series: other } of this.others.values()) {
      for (const curve of other && Object.hasOwn(other.metrics, name) ? other.metrics[name] : []) {
        own.push({ ...curve, colour, label: `${row.name} · ${t("attempt")} ${curve.attempt}` });
        colour += 1;
      }
    }
    return own;
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    for (const chart of this.charts.values()) chart.close();
  }
}
