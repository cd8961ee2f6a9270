// The secret of this browser's session. It is kept out of cookies, because those of 127.0.0.1 reach every port of it, and
// so servers of other users. A link brings a token that works once; tabs of the same server give each other the secret.

const NAME = "pdj-session";
const PATIENCE = 1000;
const channel = otherTabs();
const waiting = new Set();
const ended = new Set();
let secret = stored();

function otherTabs() {
  try {
    return new BroadcastChannel(NAME);
  } catch {
    // A browser that blocks storage may block this as well; then each tab needs a link of its own.
    return Object.assign(new EventTarget(), { postMessage() {} });
  }
}

function stored() {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null;
  }
}

function keep(value) {
  secret = value;
  try {
    if (value) sessionStorage.setItem(NAME, value);
    else sessionStorage.removeItem(NAME);
  } catch {
    // Without storage, the session of this tab ends when it is reloaded.
  }
  if (!value) return;
  const entered = [...waiting];
  waiting.clear();
  for (const callback of entered) callback();
}

channel.addEventListener("message", ({ data }) => {
  if (data.secret && !ended.has(data.secret)) keep(data.secret);
  else if (!data.secret && secret) channel.postMessage({ secret });
});

// A request with a session that has ended; another tab may have a newer one.
export function forget(used) {
  ended.add(used);
  if (secret !== used) return;
  keep(null);
  channel.postMessage({});
}

export const authorization = () => (secret ? { Authorization: `Bearer ${secret}` } : {});

// Whether this tab has a session: by the link that was opened, from before, or from another tab.
export async function enter() {
  const token = /^#token=(.*)$/.exec(location.hash)?.[1];
  if (token !== undefined) {
    history.replaceState(null, "", location.pathname);
    const started = await exchange(token).catch(() => null);
    if (started) {
      keep(started);
      channel.postMessage({ secret });
    }
  }
  if (!secret) await askOtherTabs();
  return Boolean(secret);
}

async function exchange(token) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("/api/session", { method: "POST", headers, body: JSON.stringify({ token }) });
  return response.ok ? (await response.json()).secret : null;
}

function askOtherTabs() {
  channel.postMessage({});
  return new Promise((done) => {
    waiting.add(done);
    setTimeout(done, PATIENCE);
  });
}

// Calls back once another tab has a session.
export const whenEntered = (callback) => waiting.add(callback);
