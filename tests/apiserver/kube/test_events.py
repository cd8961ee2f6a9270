"""Events on a real API server."""

from __future__ import annotations

import asyncio

import pytest

from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.kube.resource import CONFIGMAPS, EVENTS, Object

from .support import background, configmap


async def events_about(client: Client, namespace: str, name: str) -> list[Object]:
    return await client.list(EVENTS, namespace, field_selector=f"involvedObject.name={name}")


async def about(client: Client, namespace: str, name: str = "a") -> tuple[str, str, str]:
    made = await client.create(CONFIGMAPS, configmap(name, namespace))
    return namespace, name, made["metadata"]["uid"]


async def test_an_event_is_written_in_the_background(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "paddlejob")
    it = await about(client, namespace)
    async with background(recorder.run()):
        recorder.record(CONFIGMAPS, *it, event_type="Warning", reason="NameTaken", message="another's")
        async with asyncio.timeout(60):
            while not (found := await events_about(client, namespace, "a")):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    [event] = found
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "NameTaken", "another's")
    assert event["involvedObject"]["uid"] == it[2]
    assert event["involvedObject"]["kind"] == "ConfigMap"
    assert event["source"]["component"] == "paddlejob"


async def test_a_repeated_event_raises_its_count(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "paddlejob")
    it = await about(client, namespace)
    for _ in range(3):
        recorder.record(CONFIGMAPS, *it, reason="Waiting", message="no node fits")
        await recorder.flush()
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="no node fits")
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="no node fits")
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="another reason")
    await recorder.flush()
    counts = {event["message"]: event["count"] for event in await events_about(client, namespace, "a")}
    assert counts == {"no node fits": 5, "another reason": 1}


async def test_an_event_that_was_deleted_meanwhile_is_created_again(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "paddlejob")
    it = await about(client, namespace)
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="x")
    await recorder.flush()
    [event] = await events_about(client, namespace, "a")
    await client.delete(EVENTS, event["metadata"]["name"], namespace)
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="x")
    await recorder.flush()
    assert len(await events_about(client, namespace, "a")) == 1


async def test_a_long_message_is_truncated_to_what_kubernetes_accepts(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "paddlejob")
    recorder.record(CONFIGMAPS, *await about(client, namespace), reason="Long", message="训练" * 2000)
    await recorder.flush()
    [event] = await events_about(client, namespace, "a")
    assert len(event["message"]) == 1024
    assert event["message"].endswith("...")


async def test_an_event_that_cannot_be_written_is_logged_and_the_next_one_is_written(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = EventRecorder(client, "paddlejob")
    recorder.record(CONFIGMAPS, "no-such-namespace", "a", "u", reason="X", message="lost")
    recorder.record(CONFIGMAPS, *await about(client, namespace), reason="X", message="kept")
    await recorder.flush()
    assert "event X about no-such-namespace/a is lost" in caplog.text
    assert len(await events_about(client, namespace, "a")) == 1
