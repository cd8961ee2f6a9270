// Requests and streams.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { authorization, forget } from "./session.js";

export class Problem extends Error {}

export async function get(path) {
  return read(await send(path, {}));
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return read(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function send(path, { headers, ...options }) {
  const session = authorization();
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "omit", headers: { ...session, ...headers } });
  } catch {
    throw new Problem(t("lost"));
  }
  if (response.status === 401) {
    forget(session.Authorization?.slice("Bearer ".length));
    throw new Problem(t("sessionOver"));
  }
  return response;
}

async function read(response) {
  if (response.ok) return response.json();
  const content = await response.json().catch(() => ({}));
  throw new Problem(content.error || `HTTP ${response.status}`);
}

// A link could not send the session.
export async function download(path) {
  const response = await send(path, {});
  if (!response.ok) await read(response);
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition"))[1];
  const href = URL.createObjectURL(await response.blob());
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
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
    if (this.closed || this.request) return this;
    this.request = new AbortController();
    this.follow(this.request.signal);
    return this;
  }

  async follow(signal) {
    if (this.begin) this.begin();
    try {
      const response = await send(typeof this.path === "function" ? this.path() : this.path, { signal });
      if (!response.ok) await read(response);
      banner("");
      for await (const [kind, content] of events(response.body)) {
        if (signal.aborted) return;
        if (kind === "message") this.message(content);
        else return this.finish(kind, content);
      }
      throw new Problem(t("lost"));
    } catch (error) {
      if (signal.aborted) return;
      banner(error instanceof Problem ? error.message : t("lost"));
      this.stop();
      this.timer = setTimeout(() => this.start(), 1500);
    }
  }

  finish(kind, content) {
    this.close();
    if (kind === "end" && this.end) this.end();
    if (kind === "problem" && this.problem) this.problem(content.error);
  }

  stop() {
    clearTimeout(this.timer);
    if (this.request) this.request.abort();
    this.request = null;
  }

  close() {
    this.closed = true;
    this.stop();
    document.removeEventListener("visibilitychange", this.toggle);
  }
}

// Server-sent events, which EventSource could not ask for with a header. Only new text is searched for the end of a line.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let kind = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = value.split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("event: ")) kind = line.slice(7);
      else if (line.startsWith("data: ")) yield [kind, JSON.parse(line.slice(6))];
    }
  }
}

export function banner(text) {
  const element = document.getElementById("banner");
  if (!element) return;
  element.textContent = text;
  element.hidden = !text;
}
