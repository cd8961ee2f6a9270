"""What the server answers to whom: pages and files, refusals, actions, streams, and where it listens."""

from __future__ import annotations

import asyncio
import gzip
import json
import queue
import resource
import socket
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from paddlejob.client.targets.local import LocalTarget
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import Store
from paddlejob.web import actions, server, stream
from paddlejob.web import app as app_module
from paddlejob.web.access import HEADERS, AccessControl
from paddlejob.web.app import WebApp, _with_heartbeat
from paddlejob.web.browser import opened
from paddlejob.web.http import COMPRESS_FROM, number, reply
from paddlejob.web.sources.local.source import LocalSource
from paddlejob.web.views.machine import MachineInfo
from tests.support.builders import NOON, document
from tests.support.web_jobs import stored

JOB = "/api/jobs/local/default/mnist"
Client = TestClient[web.Request, web.Application]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    return Store()


@pytest.fixture
def web_app(store: Store) -> WebApp:
    return WebApp([LocalSource(LocalTarget(store))], AccessControl("127.0.0.1", 8700))


@pytest.fixture
async def stranger(web_app: WebApp) -> AsyncIterator[Client]:
    """Without a cookie."""
    async with TestClient(TestServer(web_app.build())) as made:
        yield made


@pytest.fixture
async def client(stranger: Client, web_app: WebApp) -> Client:
    assert (await stranger.get("/", params={"token": web_app.access.token})).status == 200
    return stranger


async def refusal(client: Client, method: str, path: str, **options: Any) -> tuple[int, str]:
    answer = await client.request(method, path, **options)
    return answer.status, (await answer.json())["error"]


async def test_a_stranger_gets_the_login_page_and_the_files_of_the_page(stranger: Client, web_app: WebApp):
    page = await stranger.get("/")
    assert (page.status, page.content_type) == (401, "text/html")
    assert "令牌" in await (await stranger.get("/", headers={"Accept-Language": "ZH-cn"})).text()
    assert "令牌" not in await page.text()
    wrong = await stranger.get("/", params={"token": "x"})
    assert (wrong.status, "Set-Cookie" in wrong.headers) == (403, False)
    assert (await refusal(stranger, "GET", "/api/jobs"))[0] == 401
    style = await stranger.get("/static/style.css", headers={"Accept-Encoding": "identity"})
    assert (style.status, style.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    packed = await stranger.get("/static/style.css", headers={"Accept-Encoding": "gzip"}, auto_decompress=False)
    assert gzip.decompress(await packed.read()) == await style.read()


async def test_only_files_of_the_page_are_served(stranger: Client):
    for name in ("index.html", "login.html", "absent.js", "..%2Fapp.py"):
        assert (await stranger.get(f"/static/{name}")).status == 404
    script = await stranger.get("/static/i18n.js")
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"


async def test_the_token_is_exchanged_for_a_cookie_and_the_page_follows(client: Client):
    page = await client.get("/")
    assert page.status == 200
    assert await page.text() == (Path(app_module.__file__).parent / "static/index.html").read_text()


async def test_the_session_starts_without_the_token_in_the_address(stranger: Client, web_app: WebApp):
    entered = await stranger.get("/", params={"token": web_app.access.token}, allow_redirects=False)
    assert (entered.status, entered.headers["Location"]) == (303, "/")
    cookie = entered.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie
    assert web_app.access.token not in cookie


async def test_requests_of_other_sites_hosts_and_forms_are_refused(client: Client, store: Store):
    stored(store)
    assert (await refusal(client, "GET", "/api/jobs", headers={"Host": "evil.example"}))[0] == 421
    assert (await refusal(client, "GET", "/", headers={"Host": "evil.example"}))[0] == 421
    foreign = {"Origin": "http://evil.example"}
    assert (await refusal(client, "GET", "/api/jobs", headers=foreign))[0] == 403
    assert (await refusal(client, "GET", "/static/style.css", headers=foreign))[0] == 403
    assert (await refusal(client, "POST", "/", headers=foreign))[0] == 403
    assert (await client.get("/", headers={"Sec-Fetch-Site": "cross-site"})).status == 200, "a link leads here"
    assert (await refusal(client, "POST", f"{JOB}/delete", data={"a": "b"}))[0] == 415
    assert (await client.head("/api/jobs")).status == 200


async def test_every_answer_carries_the_headers_that_keep_a_browser_safe(client: Client):
    for path in ("/", "/static/style.css", "/api/jobs", "/nothing"):
        headers = (await client.get(path)).headers
        assert all(headers[name] == value for name, value in HEADERS.items())
        assert "Server" not in headers
    assert set(HEADERS) == {
        "Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy",
        "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control",
    }  # fmt: skip
    policy = HEADERS["Content-Security-Policy"].split("; ")
    assert policy == [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]  # fmt: skip


async def test_a_server_for_all_addresses_also_answers_to_its_own_names():
    access = AccessControl("0.0.0.0", 8700)
    for name in ("localhost", socket.gethostname(), "0.0.0.0", "[fe80::1]:8700"):
        assert access.accepts_host(name)
    named = AccessControl("web.example", 8700)
    assert named.accepts_host("web.example:8700")
    assert access.cookie == "pdj-web-8700"


async def test_an_action_runs_its_command(client: Client, store: Store):
    stored(store, phase="Completed", completionTime="2027-01-15T08:00:00Z")
    answer = await client.post(f"{JOB}/delete", json={})
    assert (answer.status, await answer.json()) == (200, {"message": "mnist deleted"})
    assert not store.folder(("default", "mnist")).path.exists()


async def test_an_action_that_fails_is_answered_with_the_message_of_its_command(client: Client, store: Store):
    stored(store, phase="Completed", completionTime="2027-01-15T08:00:00Z")
    status, message = await refusal(client, "POST", f"{JOB}/scale", json={"workers": 3})
    assert (status, message) == (400, "job mnist has ended (Completed) and cannot be changed; run it again")
    assert (await refusal(client, "POST", f"{JOB}/scale", json={}))[1].startswith("scale needs a number of workers")
    assert (await refusal(client, "POST", f"{JOB}/delete", json={"workers": 3}))[0] == 400
    assert (await refusal(client, "POST", f"{JOB}/scale", json={"workers": 100_001}))[0] == 400


@pytest.mark.parametrize(
    ("program", "message"),
    [("import sys; sys.exit('pdj: no')", "^no$"), ("import sys; sys.exit(3)", "pdj suspend failed with exit status 3")],
)
async def test_the_end_of_a_command_is_told(monkeypatch: pytest.MonkeyPatch, program: str, message: str):
    monkeypatch.setattr(actions, "PDJ", [actions.PDJ[0], "-c", program])
    with pytest.raises(BadInput, match=message):
        await actions.execute("suspend", ["suspend", "mnist"])


async def test_a_command_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actions, "PDJ", [actions.PDJ[0], "-c", "import time; time.sleep(300)"])
    monkeypatch.setattr(actions, "TIMEOUT", 0.1)
    with pytest.raises(NotPossible, match="pdj suspend did not end within 0 s"):
        await actions.execute("suspend", ["suspend", "mnist"])


async def test_a_server_that_only_shows_changes_nothing(store: Store):
    made = WebApp([LocalSource(LocalTarget(store))], AccessControl("127.0.0.1", 8700), read_only=True)
    stored(store, phase="Running")
    async with TestClient(TestServer(made.build())) as client:
        await client.get("/", params={"token": made.access.token})
        assert (await refusal(client, "POST", f"{JOB}/delete", json={}))[0] == 403
        assert (await (await client.get("/api/jobs")).json())["readOnly"] is True
        assert (await (await client.get(JOB)).json())["commands"] == []
    assert store.folder(("default", "mnist")).path.exists()


async def test_a_body_that_is_too_large_is_refused(client: Client, store: Store):
    stored(store)
    large = {"x": "y" * (64 * 1024)}
    assert (await refusal(client, "POST", f"{JOB}/suspend", json=large))[0] == 413


@pytest.mark.parametrize(("text", "status"), [("-1", 400), ("x", 400), ("1" * 16, 400), ("²", 400)])
async def test_a_revision_is_a_number(client: Client, text: str, status: int):
    assert (await client.get("/api/stream", params={"since": text})).status == status


def test_a_number_of_a_request_defaults_to_0():
    assert number(make_mocked_request("GET", "/?since=12"), "since") == 12
    assert number(make_mocked_request("GET", f"/?since={'1' * 15}"), "since") == int("1" * 15)
    assert number(make_mocked_request("GET", "/"), "since") == 0


def test_small_answers_are_not_compressed():
    asked = make_mocked_request("GET", "/", headers={"Accept-Encoding": "gzip, br"})
    short, long = "x" * (COMPRESS_FROM - 3), "x" * (COMPRESS_FROM - 2)
    assert "Content-Encoding" not in reply(asked, short).headers
    assert reply(asked, long).headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in reply(make_mocked_request("GET", "/"), long).headers
    assert reply(asked, {1: "a"}).body == b'{"1":"a"}'


async def test_the_name_of_a_downloaded_file_is_safe(client: Client, store: Store):
    folder, lock = store.begin(document(), RunOptions(), NOON)
    lock.release()
    for replica in ("worker-0", "worker-1"):
        log = folder.log(1, f"mnist-{replica}")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"of {replica}\n")
    both = await client.get(f"{JOB}/logs/download")
    assert both.headers["Content-Disposition"] == 'attachment; filename="mnist.log"'
    assert both.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert await both.text() == "==> worker-0 <==\nof worker-0\n==> worker-1 <==\nof worker-1\n"
    assert (await client.get("/api/jobs/local/default/absent/logs/download")).status == 404


async def test_the_stream_of_jobs_sends_changes_as_events(client: Client, store: Store):
    folder = stored(store, phase="Running")
    first = (await (await client.get("/api/jobs")).json())["changes"]["revision"]
    answer = await client.get("/api/stream", params={"since": str(first)})
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    folder.write_status(folder.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    lines = [await asyncio.wait_for(answer.content.readline(), 30) for _ in range(3)]
    assert (lines[0], lines[2]) == (b"event: message\n", b"\n")
    assert json.loads(lines[1].removeprefix(b"data: "))["rows"][0]["restarts"] == 3
    answer.close()


async def test_streams_are_limited_and_end_with_the_server(client: Client, web_app: WebApp, monkeypatch: Any):
    monkeypatch.setattr(stream, "MOST_STREAMS", 1)
    answer = await client.get("/api/stream")
    assert answer.status == 200
    while len(web_app.streams.tasks) < 1:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    refused = await client.get("/api/stream")
    assert (refused.status, (await refused.json())["error"]) == (503, "1 pages are open; close some of them")
    web_app.streams.end()
    while web_app.streams.tasks:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    answer.close()


async def test_nothing_new_is_a_sign_of_life_once_in_a_while(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr("paddlejob.web.app.time.monotonic", lambda: now[0])

    async def batches() -> AsyncIterator[list[str]]:
        for seconds, batch in ((0, []), (1, []), (1, ["a"]), (15, []), (1, []), (1, []), (16, [])):
            now[0] += seconds
            yield batch

    assert [batch async for batch in _with_heartbeat(batches())] == [[], ["a"], None, None]
    assert stream.HEARTBEAT == b": alive\n\n"


async def test_a_target_that_does_not_answer_hides_no_other(client: Client, web_app: WebApp, monkeypatch: Any):
    (source,) = web_app.feed.sources.values()

    async def fails() -> MachineInfo:
        raise NotPossible("no permission")

    monkeypatch.setattr(source, "machine", fails)
    (found,) = await (await client.get("/api/machine")).json()
    assert (found["name"], found["title"], found["note"]) == ("local", "this machine", "no permission")


def test_without_a_port_the_default_or_a_free_one_is_used(monkeypatch: pytest.MonkeyPatch):
    with server.listen("127.0.0.1", 0) as taken:
        monkeypatch.setattr(server, "DEFAULT_PORT", taken.getsockname()[1])
        with server.listen("127.0.0.1", None) as other:
            assert other.getsockname()[1] not in (0, server.DEFAULT_PORT)
    with server.listen("127.0.0.1", None) as free:
        assert free.getsockname()[1] == server.DEFAULT_PORT
    with pytest.raises(
        NotPossible, match=r"cannot listen on 192\.0\.2\.1:\d+: Cannot assign .*; choose another --port"
    ):
        server.listen("192.0.2.1", None)


def test_the_limit_of_open_files_is_raised_as_far_as_allowed(monkeypatch: pytest.MonkeyPatch):
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: changed.append(limits))
    for limits in ((1024, 4096), (1024, resource.RLIM_INFINITY), (9000, 9000), (resource.RLIM_INFINITY,) * 2):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        server._raise_file_limit()
    assert changed == [(4096, 4096), (8192, resource.RLIM_INFINITY)]


def test_a_browser_is_opened_by_a_file_that_only_its_user_can_read(monkeypatch: pytest.MonkeyPatch):
    seen: queue.Queue[str] = queue.Queue()
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", seen.put)
    with opened("http://x/?a=1&token=t"):
        path = Path(seen.get(timeout=60).removeprefix("file://"))
        assert 'content="0; url=http://x/?a=1&amp;token=t"' in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()
    with opened(""):
        assert seen.empty()
