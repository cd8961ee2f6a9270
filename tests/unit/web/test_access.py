"""Who may talk to the server."""

from __future__ import annotations

import asyncio
import gzip
import socket
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from multidict import CIMultiDict, CIMultiDictProxy

from paddlejob.local.state.store import JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.web import app as app_module
from paddlejob.web.access import HEADERS, AccessControl, is_loopback
from paddlejob.web.app import WebApp
from paddlejob.web.job_list import JobList
from tests.support.web_jobs import JOB, WebClient, log_in, refusal, stored


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.5.5.5", True), ("0.0.0.0", False), ("x", False)],
)
def test_loopback_is_known_by_address_and_name(host: str, expected: bool):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("header", ["localhost", "127.0.0.1:8700", "[::1]:8700", "LOCALHOST:1"])
def test_a_server_on_loopback_answers_to_the_names_of_this_machine(header: str):
    assert AccessControl("127.0.0.1").accepts_host(header)


@pytest.mark.parametrize(
    "header", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "[", "a@b"]
)
def test_a_server_on_loopback_answers_to_no_other_name(header: str):
    assert not AccessControl("127.0.0.1").accepts_host(header)


def test_a_server_for_all_addresses_answers_to_addresses_but_not_to_names_of_strangers():
    access = AccessControl("0.0.0.0")
    assert access.accepts_host("10.1.2.3:8700")
    assert not access.accepts_host("evil.example")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, True),
        ({"Origin": "http://localhost:8700"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "http://localhost:8701"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://["}, False),
        ({"Origin": "https://localhost:8700"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8700"}, False),
    ],
)
def test_a_request_of_another_origin_is_known_by_its_headers(headers: dict[str, str], expected: bool):
    given = CIMultiDictProxy(CIMultiDict({"Host": "localhost:8700", **headers}))
    assert AccessControl("127.0.0.1").is_same_origin(given) is expected


async def test_a_stranger_gets_the_page_and_its_files_but_nothing_of_a_job(stranger: WebClient, store: JobStore):
    stored(store)
    page = await stranger.get("/")
    assert (page.status, page.content_type) == (200, "text/html")
    assert await page.text() == (Path(app_module.__file__).parent / "static/index.html").read_text()
    for path in ("/api/jobs", "/api/stream", "/api/machine", JOB, f"{JOB}/logs/download"):
        assert (await refusal(stranger, "GET", path))[0] == 401
    assert (await refusal(stranger, "POST", f"{JOB}/delete", json={}))[0] == 401
    style = await stranger.get("/static/style.css", headers={"Accept-Encoding": "identity"})
    assert (style.status, style.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    packed = await stranger.get("/static/style.css", headers={"Accept-Encoding": "gzip"}, auto_decompress=False)
    assert gzip.decompress(await packed.read()) == await style.read()


@pytest.mark.parametrize("header", [b"Bearer \xff", b"Bearer", b"Basic eA==", b"Bearer " + b"x" * 5000, b"\x1b[2J"])
async def test_a_session_that_does_not_exist_is_refused(stranger: WebClient, header: bytes):
    reader, writer = await asyncio.open_connection(stranger.host, stranger.port)
    writer.write(b"GET /api/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n" % header)
    assert (await reader.readline()).split()[1] in (b"400", b"401")
    writer.close()


async def test_only_files_of_the_page_are_served(stranger: WebClient):
    for name in ("index.html", "absent.js", "..%2Fapp.py"):
        assert (await stranger.get(f"/static/{name}")).status == 404
    script = await stranger.get("/static/i18n.js")
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"


async def test_requests_of_other_sites_hosts_and_forms_are_refused(client: WebClient, store: JobStore):
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


async def test_every_answer_carries_the_headers_that_keep_a_browser_safe(client: WebClient):
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
    access = AccessControl("0.0.0.0")
    for name in ("localhost", socket.gethostname(), "0.0.0.0", "[fe80::1]:8700"):
        assert access.accepts_host(name)
    named = AccessControl("web.example")
    assert named.accepts_host("web.example:8700")


async def test_a_server_that_only_shows_changes_nothing(store: JobStore):
    made = WebApp([JobList(LocalTarget(store))], AccessControl("127.0.0.1"), read_only=True)
    stored(store, phase="Running")
    async with TestClient(TestServer(made.build())) as client:
        client.session.headers["Authorization"] = await log_in(client, made.access.sessions.new_token())
        assert (await refusal(client, "POST", f"{JOB}/delete", json={}))[0] == 403
        assert (await (await client.get("/api/jobs")).json())["readOnly"] is True
        assert (await (await client.get(JOB)).json())["commands"] == []
    assert store.folder(("default", "mnist")).path.exists()
