"""Streams of events: jobs, logs, signs of life, and their number."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paddlejob.local.state.store import JobStore
from paddlejob.web import stream
from paddlejob.web.app import WebApp, with_heartbeat
from tests.support.web_jobs import JOB, WebClient, stored


async def test_the_stream_of_jobs_sends_changes_as_events(client: WebClient, store: JobStore):
    folder = stored(store, phase="Running")
    first = (await (await client.get("/api/jobs")).json())["changes"]["revision"]
    answer = await client.get("/api/stream", params={"since": str(first)})
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    folder.write_status(folder.job().status.model_copy(update={"restarts": 3}))  # type: ignore[union-attr]
    lines = [await asyncio.wait_for(answer.content.readline(), 30) for _ in range(3)]
    assert (lines[0], lines[2]) == (b"event: message\n", b"\n")
    assert json.loads(lines[1].removeprefix(b"data: "))["rows"][0]["restarts"] == 3
    answer.close()


async def test_streams_are_limited_and_end_with_the_server(client: WebClient, web_app: WebApp, monkeypatch: Any):
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

    assert [batch async for batch in with_heartbeat(batches())] == [[], ["a"], None, None]
    assert stream.HEARTBEAT == b": alive\n\n"


async def test_the_stream_of_a_log_ends_with_the_job(client: WebClient, store: JobStore):
    stored(store, logs={"1/worker-0": "hello\n"}, phase="Completed", attempt=1)
    text = await (await client.get(f"{JOB}/logs/stream")).text()
    kinds = [line for line in text.splitlines() if line.startswith("event")]
    assert kinds == ["event: message", "event: end"]
    assert json.loads(text.splitlines()[1].removeprefix("data: ")) == [
        {"replica": "worker-0", "lines": ["hello"], "bar": "", "skipped": 0}
    ]


async def test_a_stream_of_a_job_that_is_removed_says_so(client: WebClient, store: JobStore):
    folder = stored(store, phase="Completed")
    answer = await client.get(f"{JOB}/stream")
    assert (await answer.content.readline()) == b"event: message\n"
    folder.remove()
    rest = (await asyncio.wait_for(answer.content.read(), 30)).decode()
    assert "event: problem" in rest and "not found" in rest
