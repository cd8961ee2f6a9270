"""Requests to a server in this process, over the files of real jobs."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from paddlejob.client.targets.local import LocalTarget
from paddlejob.errors import NotPossible
from paddlejob.local.state.store import Store
from paddlejob.web.access import AccessControl
from paddlejob.web.app import WebApp
from paddlejob.web.server import listen, shown_host
from paddlejob.web.sources.local.source import LocalSource
from tests.support.web_jobs import steps, stored

JOB = "/api/jobs/local/default/mnist"
Client = TestClient[web.Request, web.Application]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    """With the cookie of a page."""
    app = WebApp([LocalSource(LocalTarget(store))], AccessControl("127.0.0.1", 8700))
    async with TestClient(TestServer(app.build())) as made:
        entered = await made.get("/", params={"token": app.access.token})
        assert entered.status == 200
        yield made


async def get(client: Client, path: str, status: int = 200) -> Any:
    answer = await client.get(path)
    assert answer.status == status, await answer.text()
    return await answer.json()


async def test_a_job_is_served_with_its_row_detail_series_logs_and_plan(client: Client, store: Store):
    stored(store, logs={"1/worker-0": steps(20)}, phase="Completed", attempt=1)
    (row,) = (await get(client, "/api/jobs"))["changes"]["rows"]
    assert (row["name"], row["phase"], row["fraction"]) == ("mnist", "Completed", 1.0)
    detail = await get(client, JOB)
    assert detail["row"]["name"] == "mnist" and "PaddleJob" in detail["file"]
    assert (await get(client, f"{JOB}/series"))["metrics"]["loss"][0]["steps"] == list(range(1, 21))
    assert await get(client, f"{JOB}/logs") == [{"attempt": 1, "replica": "worker-0", "size": len(steps(20))}]
    assert [one["line"] for one in (await get(client, f"{JOB}/logs/search?q=step 2"))["found"]] == [2, 20]
    assert (await get(client, f"{JOB}/plan"))["objects"] == 3
    downloaded = await client.get(f"{JOB}/logs/download?replica=worker-0&attempt=1")
    assert await downloaded.text() == steps(20)
    assert downloaded.headers["Content-Disposition"] == 'attachment; filename="mnist-worker-0-1.log"'
    for missing in ("replica=worker-7", "attempt=9"):
        assert "has no such log" in (await get(client, f"{JOB}/logs/download?{missing}", 404))["error"]
    assert [one["name"] for one in await get(client, "/api/machine")] == ["local"]


async def test_what_does_not_exist_is_not_found_and_says_what_does(client: Client, store: Store):
    stored(store)
    assert "existing jobs: mnist" in (await get(client, "/api/jobs/local/default/other", 404))["error"]
    assert "is not a target" in (await get(client, "/api/jobs/moon/default/mnist", 400))["error"]
    assert (await get(client, f"{JOB}/logs/search?q=(", 400))["error"].startswith("(: is not a regular expression")
    assert "error" in await get(client, "/nothing", 404)


async def test_a_job_whose_message_says_not_found_is_found(client: Client, store: Store):
    stored(store, phase="Failed", message="command not found")
    assert (await get(client, JOB))["message"] == "command not found"


async def test_the_stream_of_a_log_ends_with_the_job(client: Client, store: Store):
    stored(store, logs={"1/worker-0": "hello\n"}, phase="Completed", attempt=1)
    text = await (await client.get(f"{JOB}/logs/stream")).text()
    kinds = [line for line in text.splitlines() if line.startswith("event")]
    assert kinds == ["event: message", "event: end"]
    assert json.loads(text.splitlines()[1].removeprefix("data: ")) == [
        {"replica": "worker-0", "lines": ["hello"], "bar": "", "skipped": 0}
    ]


async def test_a_stream_of_a_job_that_is_removed_says_so(client: Client, store: Store):
    folder = stored(store, phase="Completed")
    answer = await client.get(f"{JOB}/stream")
    assert (await answer.content.readline()) == b"event: message\n"
    folder.remove()
    rest = (await asyncio.wait_for(answer.content.read(), 30)).decode()
    assert "event: problem" in rest and "not found" in rest


async def test_a_failure_inside_says_nothing_to_the_page_and_everything_to_the_log(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    stored(store)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("paddlejob.web.app.detail_of", broken)
    with caplog.at_level(logging.ERROR):
        assert "secret" not in json.dumps(await get(client, JOB, 500))
    assert "secret detail" in caplog.text


async def test_large_answers_are_compressed_for_those_who_accept_it(client: Client, store: Store):
    for index in range(20):
        stored(store, f"job-{index}")
    plain = await client.get("/api/jobs", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    packed = await client.get("/api/jobs", headers={"Accept-Encoding": "gzip"}, auto_decompress=False)
    assert gzip.decompress(await packed.read()) == await plain.read()


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"workers": "3"}', b'{"workers": -1}', b'{"workers": true}'])
async def test_a_body_that_is_not_understood_changes_nothing(client: Client, store: Store, body: bytes):
    stored(store)
    answer = await client.post(f"{JOB}/scale", data=body, headers={"Content-Type": "application/json"})
    assert answer.status == 400
    assert store.folder(("default", "mnist")).path.exists()


async def test_an_unknown_action_is_refused(client: Client, store: Store):
    stored(store)
    answer = await client.post(f"{JOB}/explode", json={})
    assert answer.status == 400 and "suspend" in (await answer.json())["error"]


def test_a_port_in_use_is_an_error_only_if_it_was_asked_for():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NotPossible, match="choose another --port"):
            listen("127.0.0.1", port)


def test_the_url_names_a_host_that_a_browser_can_open():
    assert shown_host("127.0.0.1") == "127.0.0.1"
    assert shown_host("::1") == "[::1]"
    assert shown_host("0.0.0.0") not in ("", "0.0.0.0")
