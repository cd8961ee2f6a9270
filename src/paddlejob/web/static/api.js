// Requests and streams.

import { t } from "./i18n.js";

export class Problem extends Error {}

export async function get(path) {
  return read(await send(path, {}));
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return read(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function send(path, options) {
  try {
    return await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(t("lost"));
  }
}

async function read(response) {
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(content.error || `HTTP ${response.status}`);
  return content;
}

export const jobPath = (row) =>
  `/api/jobs/${encodeURIComponent(row.target)}/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;

// A browser opens at most six connections to a server, so a hidden tab gives its stream back.
export class Stream {
  constructor(path, { message, problem, end, begin }) {
    Object.assign(this, { path, message, problem, end, begin });
    this.closed = this.wanted = false;
    this.toggle = () => (document.hidden ? this.stop() : this.wanted && this.start());
    document.addEventListener("visibilitychange", this.toggle);
  }

  start() {
    this.wanted = true;
    if (this.closed || this.source) return this;
    const source = new EventSource(typeof this.path === "function" ? this.path() : this.path);
    this.source = source;
    if (this.begin) this.begin();
    source.addEventListener("open", () => banner(""));
    source.addEventListener("message", (event) => this.message(JSON.parse(event.data)));
    source.addEventListener("end", () => {
      this.close();
      if (this.end) this.end();
    });
    source.addEventListener("problem", (event) => {
      this.close();
      if (this.problem) this.problem(JSON.parse(event.data).error);
    });
    source.addEventListener("error", async () => {
      banner(t("lost"));
      this.stop();
      this.timer = setTimeout(() => this.start(), 1500);
      if (await isNewServer()) banner(t("newServer"));
    });
    return this;
  }

  stop() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }

  close() {
    this.closed = true;
    this.stop();
    document.removeEventListener("visibilitychange", this.toggle);
  }
}

// A stream does not tell why it ended. A server that was started again does not know the cookie of this page.
async function isNewServer() {
  const answer = await send("/api/jobs", { method: "HEAD" }).catch(() => null);
  return answer?.status === 401;
}

export function banner(text) {
  const element = document.getElementById("banner");
  if (!element) return;
  element.textContent = text;
  element.hidden = !text;
}
