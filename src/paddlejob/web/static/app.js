// Routes, the bar at the top, and keys.

import { h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { jobPage } from "./job.js";
import { jobsPage } from "./jobs.js";
import { logsPage } from "./logs.js";
import { machinePage } from "./machine.js";
import { apply, preferences, remember } from "./preferences.js";
import { enter, whenEntered } from "./session.js";

const THEMES = ["auto", "light", "dark"];
const SYMBOLS = { auto: "◐", light: "☀", dark: "☾" };
const main = h("main", {});
let page = { close() {} };

function frame() {
  const theme = h("button", { class: "plain", id: "theme", title: `${t("theme")}: ${t(preferences.theme)}`, "aria-label": `${t("theme")}: ${t(preferences.theme)}`, onclick: nextTheme }, SYMBOLS[preferences.theme]);
  const language = h("button", { class: "plain", id: "language", lang: preferences.language === "zh" ? "en" : "zh", onclick: nextLanguage }, t("language"));
  const link = (name, href) => h("a", { href, class: "nav", "aria-current": current() === name ? "page" : null }, t(name));
  const bar = h("header", {}, h("a", { href: "#/", class: "brand" }, "pdj"), link("jobs", "#/"), link("machine", "#/machine"), h("span", { class: "grow" }), h("span", { class: "only-read-only muted" }, t("readOnly")), language, theme);
  replace(document.getElementById("app"), bar, h("div", { id: "banner", role: "alert", hidden: true }), main, h("footer", { class: "muted" }, t("keys")));
}

const current = () => (location.hash.startsWith("#/machine") ? "machine" : "jobs");

async function open() {
  if (await enter()) return route();
  page.close();
  page = { close() {} };
  frame();
  replace(main, h("div", { class: "login" }, h("h1", {}, "pdj web"), h("p", {}, `${t("enter")} `, h("code", {}, "pdj web --url"), ` ${t("enterBy")}`)));
  whenEntered(route);
}

function route() {
  page.close();
  frame();
  let parts;
  try {
    parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    parts = ["?"];
  }
  const [kind, target, namespace, name, section, replica] = parts;
  document.title = kind === "job" && name ? `${name} · pdj` : "pdj";
  if (kind === "") page = jobsPage(main);
  else if (kind === "machine") page = machinePage(main);
  else if (kind === "job" && name && section === "logs") page = logsPage(main, { target, namespace, name }, replica);
  else if (kind === "job" && name && !section) page = jobPage(main, { target, namespace, name });
  else {
    page = { close() {} };
    replace(main, h("p", { class: "empty" }, t("notFound")));
  }
  scrollTo(0, 0);
}

function nextTheme() {
  preferences.theme = THEMES[(THEMES.indexOf(preferences.theme) + 1) % THEMES.length];
  remember("theme", preferences.theme);
  apply();
  frame();
}

function nextLanguage() {
  preferences.language = preferences.language === "zh" ? "en" : "zh";
  remember("language", preferences.language);
  apply();
  open();
}

function move(step) {
  const rows = [...document.querySelectorAll("tr[data-link]:not([hidden])")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))].focus();
}

function onKey(event) {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (location.hash.includes("/logs")) location.hash = location.hash.replace(/\/logs.*/, "");
    else location.hash = "#/";
  } else if (typing) return;
  else if (event.key === "/" && page.search) {
    event.preventDefault();
    page.search.focus();
  } else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "l" && page.logs) location.hash = page.logs;
  else if (event.key === "Enter" && event.target.dataset?.link) location.hash = event.target.dataset.link;
}

addEventListener("hashchange", open);
addEventListener("keydown", onKey);
apply();
open();
