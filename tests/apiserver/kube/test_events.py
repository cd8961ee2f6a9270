"""Events on a real API server."""

from __future__ import annotations

from paddlejob.kube.client import Client
from paddlejob.kube.events import MOST_WAITING, Recorder
from paddlejob.kube.resource import CONFIGMAPS, EVENTS, Object

from .support import background, configmap, until


async def events_about(client: Client, namespace: str, name: str) -> list[Object]:
    return await client.list(EVENTS, namespace, field_selector=f"involvedObject.name={name}")


async def about(client: Client, namespace: str, name: str = "a") -> tuple[str, str, str]:
    made = await client.create(CONFIGMAPS, configmap(name, namespace))
    return namespace, name, made["metadata"]["uid"]


async def test_an_event_is_written_in_the_background(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob", "operator-1")
    it = await about(client, namespace)
    async with background(recorder.run()):
        recorder.record(CONFIGMAPS, *it, kind="Warning", reason="NameTaken", message="another's")
        await until(lambda: recorder._sent)
    [event] = await events_about(client, namespace, "a")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "NameTaken", "another's")
    assert event["involvedObject"]["uid"] == it[2]
    assert event["involvedObject"]["kind"] == "ConfigMap"
    assert event["source"]["component"] == "paddlejob"


async def test_the_same_event_again_raises_its_count(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob")
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


async def test_after_ten_minutes_it_is_a_new_event(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob")
    it = await about(client, namespace)
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="x")
    await recorder.flush()
    [sent] = recorder._sent.values()
    sent.at -= 601
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="x")
    await recorder.flush()
    assert [event["count"] for event in await events_about(client, namespace, "a")] == [1, 1]


async def test_an_event_that_was_deleted_meanwhile_is_written_anew(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob")
    it = await about(client, namespace)
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="x")
    await recorder.flush()
    [event] = await events_about(client, namespace, "a")
    await client.delete(EVENTS, event["metadata"]["name"], namespace)
    recorder.record(CONFIGMAPS, *it, reason="Waiting", message="x")
    await recorder.flush()
    assert len(await events_about(client, namespace, "a")) == 1


async def test_a_long_message_is_cut_to_what_kubernetes_shows(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob")
    recorder.record(CONFIGMAPS, *await about(client, namespace), reason="Long", message="训练" * 2000)
    await recorder.flush()
    [event] = await events_about(client, namespace, "a")
    assert len(event["message"]) == 1024
    assert event["message"].endswith("...")


async def test_an_event_that_cannot_be_written_harms_nobody(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob")
    recorder.record(CONFIGMAPS, "no-such-namespace", "a", "u", reason="X", message="lost")
    recorder.record(CONFIGMAPS, *await about(client, namespace), reason="X", message="kept")
    await recorder.flush()
    assert recorder.dropped == 1
    assert len(await events_about(client, namespace, "a")) == 1


async def test_a_flood_is_bounded(client: Client, namespace: str) -> None:
    recorder = Recorder(client, "paddlejob")
    for number in range(MOST_WAITING + 50):
        recorder.record(CONFIGMAPS, namespace, "a", "u", reason="Flood", message=str(number))
    assert recorder.dropped == 50
