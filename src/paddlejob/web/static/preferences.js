// Language and theme, remembered in this browser.

const stored = (name) => {
  try {
    return localStorage.getItem(`pdj-${name}`);
  } catch {
    return null;
  }
};

export function remember(name, value) {
  try {
    localStorage.setItem(`pdj-${name}`, value);
  } catch {
    // A private window may have no storage; the choice then lasts as long as the page.
  }
}

const preferred = () => ((navigator.languages || [])[0] || "en").toLowerCase();

export const preferences = {
  language: ["en", "zh"].includes(stored("language")) ? stored("language") : preferred().startsWith("zh") ? "zh" : "en",
  theme: ["light", "dark", "auto"].includes(stored("theme")) ? stored("theme") : "auto",
};

export function apply() {
  document.documentElement.lang = preferences.language === "zh" ? "zh-CN" : "en";
  if (preferences.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = preferences.theme;
}
