"""Events as they are sent to the API server: one object for each kind of event, whose count grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from paddlejob.kube import events
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.kube.resource import NAMESPACES, PODS
from tests.support.scripted_cluster import Serve
from tests.support.waiting import until


class Server:
    """Stores events; `fails` are the codes of the next responses."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.fails: list[int] = []

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append((request.method, request.path, body))
        if self.fails:
            code = self.fails.pop(0)
            return web.json_response({"kind": "Status", "code": code, "message": "no"}, status=code)
        return web.json_response(body)

    def sent(self, method: str) -> list[Any]:
        return [body for name, _, body in self.requests if name == method]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def recorder(serve: Serve, server: Server) -> AsyncIterator[EventRecorder]:
    async with Client(await serve(server.handle)) as client:
        yield EventRecorder(client, "paddlejob")


async def record(recorder: EventRecorder, *messages: str, name: str = "a") -> None:
    for message in messages or ("m",):
        recorder.record(PODS, "ml", name, "uid-a", event_type="Warning", reason="Broken", message=message)
    await recorder.flush()


async def test_an_event_has_every_field_that_kubectl_describe_looks_for(server: Server, recorder: EventRecorder):
    await record(recorder)
    ((method, path, event),) = server.requests
    assert (method, path) == ("POST", "/api/v1/namespaces/ml/events")
    assert event["metadata"].pop("name").startswith("a.")
    first, last = event.pop("firstTimestamp"), event.pop("lastTimestamp")
    assert first == last and first.endswith("Z")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "ml"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "ml", "name": "a", "uid": "uid-a"},
        "type": "Warning",
        "reason": "Broken",
        "message": "m",
        "count": 1,
        "source": {"component": "paddlejob"},
        "reportingComponent": "paddlejob",
        "reportingInstance": "paddlejob",
    }


async def test_the_same_event_raises_the_count_by_as_often_as_it_happened(server: Server, recorder: EventRecorder):
    await record(recorder, "m", "m")
    await record(recorder, "m")
    await record(recorder, "m", "another")
    created = server.sent("POST")
    assert [(one["message"], one["count"]) for one in created] == [("m", 2), ("another", 1)]
    assert [one["count"] for one in server.sent("PATCH")] == [3, 4]
    assert all(one["lastTimestamp"] for one in server.sent("PATCH"))
    patched = {path for method, path, _ in server.requests if method == "PATCH"}
    assert patched == {f"/api/v1/namespaces/ml/events/{created[0]['metadata']['name']}"}


async def test_an_event_that_was_deleted_is_written_again_and_counts_from_there(
    server: Server, recorder: EventRecorder
):
    await record(recorder)
    server.fails = [404]
    await record(recorder)
    await record(recorder)
    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "POST", "PATCH"]
    assert server.requests[-1][2]["count"] == 2


async def test_a_repetition_after_ten_minutes_is_a_new_event(
    server: Server, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch
):
    await record(recorder)
    monkeypatch.setattr(events, "AGGREGATION_SECONDS", 0.0)
    await record(recorder)
    assert [one["count"] for one in server.sent("POST")] == [1, 1]


async def test_an_event_that_is_rejected_does_not_delay_the_next(server: Server, recorder: EventRecorder):
    server.fails = [403]
    await record(recorder, "first", "second")
    assert [one["message"] for one in server.sent("POST")] == ["first", "second"]


async def test_an_event_about_an_object_without_a_namespace_goes_to_the_default_one(
    server: Server, recorder: EventRecorder
):
    for _ in range(2):
        recorder.record(NAMESPACES, "", "ml", "uid", reason="Seen", message="m")
        await recorder.flush()
    assert all(path.startswith("/api/v1/namespaces/default/events") for _, path, _ in server.requests)
    assert server.requests[0][2]["type"] == "Normal"


async def test_a_long_message_and_a_long_name_are_cut_to_what_kubernetes_accepts(
    server: Server, recorder: EventRecorder
):
    await record(recorder, "x" * 1025, name="n" * 253)
    await record(recorder, "y" * 1024)
    long, whole = server.sent("POST")
    assert long["message"] == "x" * 1021 + "..."
    assert whole["message"] == "y" * 1024
    assert len(long["metadata"]["name"]) == 217


async def test_events_beyond_a_thousand_are_dropped_but_known_ones_are_counted(
    server: Server, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(events, "MAX_PENDING", 2)
    await record(recorder, "one", "two", "three", "one")
    assert [(one["message"], one["count"]) for one in server.sent("POST")] == [("one", 2), ("two", 1)]


async def test_only_the_newest_events_are_remembered(
    server: Server, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(events, "MAX_REMEMBERED", 2)
    for message in ("one", "two", "three", "one", "three"):
        await record(recorder, message)
    assert [one["message"] for one in server.sent("POST")] == ["one", "two", "three", "one"]
    assert len(server.sent("PATCH")) == 1


async def test_events_are_written_as_they_are_recorded_until_the_recorder_is_cancelled(
    server: Server, recorder: EventRecorder
):
    running = asyncio.create_task(recorder.run())
    for number, message in enumerate(("first", "second"), 1):
        recorder.record(PODS, "ml", "a", "u", reason="Seen", message=message)
        await until(lambda number=number: len(server.requests) == number)
        assert server.requests[-1][2]["message"] == message
    running.cancel()
    await asyncio.wait([running])
