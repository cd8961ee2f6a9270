// Parts that several pages use.

import { h, svg } from "./dom.js";
import { duration, now } from "./format.js";
import { t } from "./i18n.js";

// Shapes besides colours, for those who cannot tell the colours apart.
const MARKS = {
  Pending: "◌", Waiting: "◌", Created: "◌", Starting: "◔", Running: "●", Restarting: "↻", Suspended: "⏸", Completed: "✓",
  Succeeded: "✓", Failed: "✕", Interrupted: "!", Damaged: "!", Deleting: "…", Stopped: "■",
};

export function badge(phase) {
  const known = Object.hasOwn(MARKS, phase);
  return h(
    "span",
    { class: `badge ${known ? `phase-${phase.toLowerCase()}` : ""}`, "data-phase": phase },
    h("span", { class: "mark", "aria-hidden": "true" }, known ? MARKS[phase] : "·"),
    known ? t(phase) : phase,
  );
}

export function bar(fraction, text) {
  const known = typeof fraction === "number";
  const percent = known ? Math.round(fraction * 100) : 0;
  const filled = h("i", {});
  filled.style.width = `${percent}%`;
  return h(
    "div",
    { class: "progress" },
    known ? h("div", { class: "bar", role: "progressbar", "aria-valuenow": percent, "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": t("progress") }, filled) : null,
    h("span", { class: "num" }, text || (known ? `${percent}%` : "")),
  );
}

export function sparkline(values, width = 88, height = 22) {
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const x = (index) => (1 + (index / (values.length - 1)) * (width - 2)).toFixed(1);
  const y = (value) => (height - 2 - ((value - low) / range) * (height - 4)).toFixed(1);
  const path = values.map((value, index) => `${index ? "L" : "M"}${x(index)} ${y(value)}`).join("");
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, svg("path", { d: path }));
}

// Texts that grow older are marked with the moment they count from.
export const since = (seconds, form = "age") =>
  seconds ? h("time", { "data-since": seconds, "data-form": form, title: new Date(seconds * 1000).toLocaleString() }, elapsed(seconds, form)) : "";

const elapsed = (seconds, form) =>
  form === "left" ? duration(seconds - now()) : form === "ago" ? t("ago", duration(now() - seconds)) : duration(now() - seconds);

setInterval(() => {
  for (const element of document.querySelectorAll("[data-since]")) {
    const text = elapsed(Number(element.dataset.since), element.dataset.form);
    if (element.textContent !== text) element.textContent = text;
  }
}, 1000);

export const jobLink = (row, page = "") =>
  `#/job/${[row.target, row.namespace, row.name].map(encodeURIComponent).join("/")}${page}`;
