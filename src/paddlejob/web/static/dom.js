// Elements are only ever built from nodes and text, never from markup: names, logs and metrics come from strangers.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const drawn = new WeakMap();
const keyOf = (element) => element.dataset.action || element.getAttribute("href") || element.textContent;

// Builds the content again only if the data has changed, and keeps the focus, what is unfolded and what is scrolled.
export function refresh(element, data, build) {
  const text = JSON.stringify(data);
  if (drawn.get(element) === text) return;
  drawn.set(element, text);
  const all = (selector) => [...element.querySelectorAll(selector)];
  const focused = element.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  const unfolded = new Set(all("details[open] > summary").map(keyOf));
  const left = element.querySelector(".scroll")?.scrollLeft;
  replace(element, build());
  for (const summary of all("summary")) if (unfolded.has(keyOf(summary))) summary.parentElement.open = true;
  if (focused !== null) all("a, button, summary").find((one) => keyOf(one) === focused)?.focus();
  if (left) element.querySelector(".scroll").scrollLeft = left;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}
