// Colours of a terminal (SGR sequences) as classes; other escape sequences are dropped.

import { h } from "./dom.js";

const SEQUENCE = /\x1b(?:\[([0-9;:]*)([A-Za-z])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

// `spans` says where to highlight: pairs of positions in the text, in order.
export function coloured(text, spans = []) {
  const nodes = [];
  let style = { colour: "", bold: false };
  let from = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    push(nodes, text, from, found.index, style, spans);
    from = found.index + found[0].length;
    if (found[2] === "m") style = next(style, found[1]);
  }
  push(nodes, text, from, text.length, style, spans);
  return nodes;
}

function next(style, codes) {
  let { colour, bold } = style;
  for (const code of (codes || "0").split(/[;:]/).map(Number)) {
    if (code === 0) [colour, bold] = ["", false];
    else if (code === 1) bold = true;
    else if (code === 22) bold = false;
    else if (code >= 30 && code <= 37) colour = String(code - 30);
    else if (code >= 90 && code <= 97) colour = String(code - 90);
    else if (code === 39) colour = "";
    else if (code === 38 || code === 48) break;
  }
  return { colour, bold };
}

function push(nodes, text, from, to, style, spans) {
  if (from === to) return;
  const parts = highlighted(text, from, to, spans);
  const name = [style.colour && `ansi-${style.colour}`, style.bold && "ansi-bold"].filter(Boolean).join(" ");
  if (name) nodes.push(h("span", { class: name }, parts));
  else nodes.push(...parts);
}

function highlighted(text, from, to, spans) {
  const parts = [];
  for (const [start, end] of spans) {
    if (end <= from || start >= to) continue;
    parts.push(text.slice(from, Math.max(from, start)), h("mark", {}, text.slice(Math.max(from, start), Math.min(to, end))));
    from = Math.min(to, end);
  }
  return [...parts, text.slice(from, to)].filter((part) => part !== "");
}
