"""How a browser gets in and stays in, and what pages of other sites and other users of the machine get from it."""

from __future__ import annotations

import http.server
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.pdj import Pdj
from tests.support.web import PATIENCE, Server, page_of, token_of

expect.set_options(timeout=PATIENCE)
READ = """async (url) => {
  const tries = [{}, {credentials: "include"}, {mode: "no-cors"}, {headers: {Authorization: "Bearer x"}}];
  const read = async (options) => { try { return await (await fetch(url, options)).text(); } catch { return ""; } };
  return (await Promise.all(tries.map(read))).join("");
}"""
CHANGE = """async (url) => {
  const json = new Blob(["{}"], {type: "application/json"});
  for (const body of ["{}", json, new URLSearchParams({a: 1})])
    await fetch(url, {method: "POST", mode: "no-cors", credentials: "include", body}).catch(() => 0);
  const form = document.createElement("form");
  Object.assign(form, {method: "POST", action: url, enctype: "text/plain", target: "_blank"});
  document.body.append(form);
  form.submit();
}"""
FRAME = """(url) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.src = url;
  frame.onload = () => done(frame.contentDocument === null ? "foreign" : frame.contentDocument.body.innerText);
  document.body.append(frame);
})"""


@dataclass
class Eavesdropper:
    """A server of another user on this machine."""

    port: int
    heard: list[str] = field(default_factory=list)


@contextmanager
def eavesdropping() -> Iterator[Eavesdropper]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.heard.append(f"{self.path} {self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>other</title>")

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        heard = Eavesdropper(listening.server_address[1])
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield heard
        listening.shutdown()
        thread.join()


@contextmanager
def forwarding(path: Path) -> Iterator[int]:
    """What `ssh -L` does: a port whose connections lead to a Unix socket."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as there:
                there.connect(str(path))
                back = threading.Thread(target=copy, args=[there, self.request], daemon=True)
                back.start()
                copy(self.request, there)
                back.join()

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening.server_address[1]
        listening.shutdown()


def secret_of(page: Page) -> str:
    """What the pages keep, wherever they do."""
    kept = "JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])"
    found = page.evaluate("sessionStorage.getItem('pdj-session')")
    assert found and found in page.evaluate(kept)
    return str(found)


def test_a_page_of_another_user_on_the_same_machine_hears_no_secret(quiet_server: Server, browser: Browser):
    with page_of(browser, quiet_server) as page, eavesdropping() as other:
        expect(page.locator("tr[data-job]")).to_be_visible()
        assert page.context.cookies() == []
        stranger = page.context.new_page()
        for url in (f"http://127.0.0.1:{other.port}/", f"http://localhost:{other.port}/"):
            stranger.goto(url)
        assert len(other.heard) >= 2
        assert not [heard for heard in other.heard if "cookie" in heard.lower() or "authorization" in heard.lower()]
        assert secret_of(page) not in "".join(other.heard)
        assert stranger.evaluate("Object.keys(sessionStorage).length + Object.keys(localStorage).length") == 0


def test_a_link_works_once_and_leaves_nothing_in_the_address(quiet_server: Server, browser: Browser):
    url = quiet_server.link()
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(url)
    expect(page.locator("tr[data-job]")).to_be_visible()
    assert page.url == quiet_server.address
    page.locator("tr[data-job] a").click()
    expect(page.locator("h1")).to_have_text("light")
    assert not [one for one in (page.url, *requests) if token_of(url) in one]
    page.go_back()
    expect(page.locator("tr[data-job]")).to_be_visible()
    other = browser.new_context()
    again = other.new_page()
    again.goto(url)
    expect(again.locator(".login")).to_contain_text("pdj web --url")
    assert quiet_server.request("POST", "/api/session", {"token": token_of(url)})[0] == 401
    page.goto(url)
    expect(page.locator("tr[data-job]")).to_be_visible()
    for one in (context, other):
        one.close()


def test_a_session_lasts_over_reloads_and_in_new_tabs(quiet_server: Server, browser: Browser):
    with page_of(browser, quiet_server) as page:
        expect(page.locator("tr[data-job]")).to_be_visible()
        page.reload()
        expect(page.locator("tr[data-job]")).to_be_visible()
        with page.context.expect_page() as opened:
            page.locator("tr[data-job] a").click(modifiers=["Control"])
        expect(opened.value.locator("h1")).to_have_text("light")
        typed = page.context.new_page()
        typed.goto(f"{quiet_server.address}#/machine")
        expect(typed.locator('[data-machine="local"]')).to_be_visible()


@pytest.mark.parametrize(("locale", "text"), [("en-US", "Each URL works once"), ("zh-CN", "每个网址只能使用一次")])
def test_a_browser_without_a_session_is_told_how_to_get_one(
    quiet_server: Server, browser: Browser, locale: str, text: str
):
    context = browser.new_context(locale=locale)
    page = context.new_page()
    page.goto(quiet_server.address)
    expect(page.locator(".login")).to_contain_text(text)
    page.goto(quiet_server.link())
    expect(page.locator("tr[data-job]")).to_be_visible()
    context.close()


def test_a_browser_that_blocks_all_storage_shows_the_pages_of_a_link(quiet_server: Server, browser: Browser):
    context = browser.new_context()
    context.add_init_script(
        "for (const name of ['sessionStorage', 'localStorage', 'BroadcastChannel'])"
        "  Object.defineProperty(window, name, {get() { throw new DOMException('blocked', 'SecurityError'); }});"
    )
    page = context.new_page()
    page.goto(quiet_server.link())
    expect(page.locator("tr[data-job]")).to_be_visible()
    context.close()


def test_a_tab_that_waits_enters_together_with_another_one(quiet_server: Server, browser: Browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{quiet_server.address}#/machine")
    expect(page.locator(".login")).to_be_visible()
    context.new_page().goto(quiet_server.link())
    expect(page.locator('[data-machine="local"]')).to_be_visible()
    context.close()


def test_the_command_prints_a_new_url_for_a_server_that_runs(ended: Pdj, quiet_server: Server, browser: Browser):
    done = ended("web", "--url", "--port", str(quiet_server.port))
    assert done.returncode == 0, done.stderr
    context = browser.new_context()
    page = context.new_page()
    page.goto(done.stdout.strip())
    expect(page.locator("tr[data-job]")).to_be_visible()
    context.close()


def test_pages_of_other_sites_can_neither_read_nor_change_nor_frame(pdj: Pdj, server: Server, browser: Browser):
    assert pdj("run", pdj.write("light", command=["echo", "hello"])).returncode == 0
    with page_of(browser, server) as page, eavesdropping() as other:
        expect(page.locator("tr[data-job]")).to_be_visible()
        stranger = page.context.new_page()
        stranger.goto(f"http://127.0.0.1:{other.port}/")
        for path in ("/api/jobs", "/static/app.js", "/api/jobs/local/default/light/logs/download"):
            assert stranger.evaluate(READ, f"{server.address}{path[1:]}") == ""
        with page.context.expect_page() as answered:
            stranger.evaluate(CHANGE, f"{server.address}api/jobs/local/default/light/delete")
        expect(answered.value.locator("body")).to_contain_text("comes from a page of another site")
        assert pdj.folder_of("light").path.exists()
        assert stranger.evaluate(FRAME, server.address) == "foreign"
        (frame,) = stranger.main_frame.child_frames
        assert frame.locator("#app").count() == 0
        opened = stranger.evaluate(
            "async (url) => { const w = open(url); await new Promise((d) => setTimeout(d, 500)); return w.closed; }",
            server.address,
        )
        assert opened, "Cross-Origin-Opener-Policy cuts the connection between the windows"


def test_a_name_of_another_site_that_leads_to_this_machine_is_refused(quiet_server: Server, browser: Browser):
    page = browser.new_page()
    for path in ("", "api/jobs", "static/app.js"):
        answer = page.goto(f"http://evil.example:{quiet_server.port}/{path}")
        assert answer and answer.status == 421
    page.close()


@pytest.mark.full
def test_a_unix_socket_is_reached_through_a_tunnel(pdj: Pdj, browser: Browser, tmp_path: Path):
    assert pdj("run", pdj.write("light", command=["echo", "hello"])).returncode == 0
    path = tmp_path / "web.sock"
    process = pdj.start("web", "--no-browser", "--socket", str(path))
    assert process.stdout
    assert f"ssh -L 127.0.0.1:8700:{path} " in process.stdout.readline()
    url = process.stdout.readline().split()[1]
    assert url.startswith("http://127.0.0.1:8700/#token=")
    with forwarding(path) as port, browser.new_context() as context:
        page = context.new_page()
        page.goto(url.replace(":8700", f":{port}"))
        expect(page.locator("tr[data-job]")).to_be_visible()
    process.terminate()
    assert process.wait(timeout=30) == 0
    assert not path.exists()
