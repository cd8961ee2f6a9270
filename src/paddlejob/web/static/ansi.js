// Colours of a terminal (SGR sequences) as classes; other escape sequences are dropped.

import { h } from "./dom.js";

const SEQUENCE = /\x1b(?:\[([0-9;:]*)([A-Za-z])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

export function coloured(text, marked) {
  const nodes = [];
  let style = { colour: "", bold: false };
  let from = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    push(nodes, text.slice(from, found.index), style, marked);
    from = found.index + found[0].length;
    if (found[2] === "m") style = next(style, found[1]);
  }
  push(nodes, text.slice(from), style, marked);
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

function push(nodes, text, style, marked) {
  if (!text) return;
  const parts = marked ? highlighted(text, marked) : [text];
  const name = [style.colour && `ansi-${style.colour}`, style.bold && "ansi-bold"].filter(Boolean).join(" ");
  if (name) nodes.push(h("span", { class: name }, parts));
  else nodes.push(...parts);
}

function highlighted(text, marked) {
  const parts = [];
  let from = 0;
  marked.lastIndex = 0;
  for (let found = marked.exec(text); found; found = marked.exec(text)) {
    if (!found[0]) {
      marked.lastIndex += 1;
      continue;
    }
    parts.push(text.slice(from, found.index), h("mark", {}, found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)].filter((part) => part !== "");
}
