// Line charts in SVG: axes, curves, and the values under the pointer. The server sends at most 400 points a curve.

import { h, replace, svg } from "./dom.js";
import { number } from "./format.js";

const MARGIN = { left: 54, right: 12, top: 8, bottom: 22 };
const HEIGHT = 190;
const COLOURS = 7;

export class Chart {
  constructor(title) {
    this.curves = [];
    this.tip = h("div", { class: "tip", hidden: true });
    this.plot = h("div", { class: "plot", tabindex: "0", role: "img", "aria-label": title });
    this.legend = h("div", { class: "legend" });
    this.element = h("figure", { class: "chart", "data-metric": title }, h("figcaption", {}, title), this.plot, this.tip, this.legend);
    this.plot.addEventListener("pointermove", (event) => this.hover(event.clientX));
    this.plot.addEventListener("pointerleave", () => this.leave());
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.leave());
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.plot);
  }

  // A curve has a label, a colour number, and arrays of steps and values.
  show(curves, stepName) {
    this.stepName = stepName;
    this.curves = curves.filter((curve) => curve.steps.length);
    this.draw();
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const scale = (this.scale = scales(this.curves, width));
    const root = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    for (const tick of ticks(scale.low, scale.high, 5)) root.append(gridline(scale.y(tick), width, number(tick)));
    for (const tick of ticks(scale.first, scale.last, Math.max(2, Math.floor(width / 110)))) root.append(stepLabel(scale.x(tick), width, number(tick)));
    for (const curve of this.curves) root.append(line(curve, scale));
    this.cursor = svg("g", {});
    root.append(this.cursor);
    replace(this.plot, root);
    replace(this.legend, this.curves.length > 1 ? this.curves.map((curve) => h("span", { class: `key colour-${curve.colour % COLOURS}` }, curve.label)) : []);
    if (this.at !== undefined) this.mark(this.at);
  }

  hover(clientX) {
    const box = this.plot.getBoundingClientRect();
    if (this.curves.length) this.mark(this.scale.step(clientX - box.left));
  }

  key(event) {
    const move = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (!move || !this.curves.length) return;
    event.preventDefault();
    const { first, last } = this.scale;
    this.mark(Math.min(last, Math.max(first, (this.at ?? last) + move * (last - first))));
  }

  mark(step) {
    this.at = step;
    const found = this.curves.map((curve) => ({ curve, index: nearest(curve.steps, step) })).filter(({ curve, index }) => step >= curve.steps[0] - this.scale.slack && step <= curve.steps.at(-1) + this.scale.slack || this.curves.length === 1 && index >= 0);
    if (!found.length) return this.leave();
    const best = found.reduce((a, b) => (Math.abs(a.curve.steps[a.index] - step) <= Math.abs(b.curve.steps[b.index] - step) ? a : b));
    const x = this.scale.x(best.curve.steps[best.index]);
    const dots = found.map(({ curve, index }) => svg("circle", { cx: this.scale.x(curve.steps[index]), cy: this.scale.y(curve.values[index]), r: 3.5, class: `dot colour-${curve.colour % COLOURS}` }));
    this.cursor.replaceChildren(svg("line", { x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, class: "cursor" }), ...dots);
    const lines = found.map(({ curve, index }) => h("div", { class: `key colour-${curve.colour % COLOURS}` }, h("b", {}, number(curve.values[index])), this.curves.length > 1 ? ` ${curve.label}` : ""));
    replace(this.tip, h("div", { class: "muted" }, `${this.stepName} ${number(best.curve.steps[best.index])}`), lines);
    this.tip.hidden = false;
    const right = x > this.plot.clientWidth / 2;
    this.tip.style.left = right ? "auto" : `${x + 14}px`;
    this.tip.style.right = right ? `${this.plot.clientWidth - x + 14}px` : "auto";
  }

  leave() {
    this.at = undefined;
    this.tip.hidden = true;
    if (this.cursor) this.cursor.replaceChildren();
  }

  close() {
    this.observer.disconnect();
  }
}

function scales(curves, width) {
  const values = curves.flatMap((curve) => curve.values);
  const steps = curves.flatMap((curve) => [curve.steps[0], curve.steps.at(-1)]);
  let [low, high] = [least(values, 0), most(values, 1)];
  const [first, last] = [least(steps, 0), most(steps, 1)];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const inner = width - MARGIN.left - MARGIN.right;
  const room = HEIGHT - MARGIN.top - MARGIN.bottom;
  const span = last - first || 1;
  return {
    low, high, first, last,
    slack: span * 0.02,
    x: (step) => MARGIN.left + ((step - first) / span) * inner,
    y: (value) => MARGIN.top + (1 - (value - low) / (high - low)) * room,
    step: (x) => first + ((x - MARGIN.left) / inner) * span,
  };
}

const least = (values, fallback) => (values.length ? values.reduce((a, b) => (b < a ? b : a)) : fallback);
const most = (values, fallback) => (values.length ? values.reduce((a, b) => (b > a ? b : a)) : fallback);

function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const found = [];
  for (let tick = Math.ceil(low / size) * size; tick <= high + size * 1e-9; tick += size) found.push(Math.abs(tick) < size * 1e-9 ? 0 : tick);
  return found;
}

const gridline = (y, width, text) =>
  svg("g", { class: "axis" }, svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }), svg("text", { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" }, text));

// The last label ends at the edge, so that it is not cut off.
function stepLabel(x, width, text) {
  const position = x > width - 30 ? { x: width - 1, "text-anchor": "end" } : { x, "text-anchor": "middle" };
  return svg("text", { class: "axis", y: HEIGHT - 6, ...position }, text);
}

function line(curve, scale) {
  const point = (index) => `${scale.x(curve.steps[index]).toFixed(1)} ${scale.y(curve.values[index]).toFixed(1)}`;
  const path = curve.steps.map((_, index) => `${index ? "L" : "M"}${point(index)}`).join("");
  const style = `curve colour-${curve.colour % COLOURS}`;
  if (curve.steps.length > 1) return svg("path", { class: style, d: path });
  return svg("circle", { class: `dot colour-${curve.colour % COLOURS}`, cx: scale.x(curve.steps[0]), cy: scale.y(curve.values[0]), r: 3 });
}

function nearest(steps, step) {
  let [low, high] = [0, steps.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
}
