"""The informer against a real API server, also one that restarts and one whose history was compacted."""

from __future__ import annotations

import asyncio
import time

import pytest

from paddlejob.kube import informer as informer_module
from paddlejob.kube.client import Client
from paddlejob.kube.informer import Informer
from paddlejob.kube.resource import CONFIGMAPS, CRDS, PODS, Object, Resource
from tests.support.waiting import until

from .conftest import ControlPlane, compact
from .support import background, configmap, pod


def text(raw: Object) -> str:
    """The transform of these stories: the data and nothing else."""
    return ",".join(f"{key}={value}" for key, value in sorted((raw.get("data") or {}).items()))


def new_informer(client: Client, namespace: str) -> Informer[str]:
    return Informer(client, CONFIGMAPS, text, namespace=namespace, label_selector="app=test")


async def test_it_follows_objects_as_they_are_created_changed_and_deleted(client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, configmap("old", namespace, x="1"))
    informer = new_informer(client, namespace)
    seen: list[tuple[str | None, str | None]] = []
    informer.add_event_handler(lambda old, new: seen.append((old, new)))
    async with background(informer.run()):
        await until(informer.synced.is_set)
        assert informer.get(namespace, "old") == "x=1"
        await client.create(CONFIGMAPS, configmap("new", namespace, x="2"))
        await until(lambda: informer.get(namespace, "new"))
        await client.patch(CONFIGMAPS, "new", namespace, {"data": {"x": "3"}})
        await until(lambda: informer.get(namespace, "new") == "x=3")
        await client.delete(CONFIGMAPS, "old", namespace)
        await until(lambda: informer.get(namespace, "old") is None)
    assert seen == [(None, "x=1"), (None, "x=2"), ("x=2", "x=3"), ("x=1", None)]
    assert time.monotonic() - informer.last_contact < 60


async def test_an_informer_of_metadata_is_sent_no_more_of_an_object(client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, configmap("old", namespace, x="1"))
    informer = Informer(client, CONFIGMAPS, lambda raw: sorted(raw), namespace=namespace, metadata_only=True)
    async with background(informer.run()):
        await until(informer.synced.is_set)
        await client.create(CONFIGMAPS, configmap("new", namespace, x="2"))
        await until(lambda: informer.get(namespace, "new"))
        for name in ("old", "new"):
            assert "data" not in (informer.get(namespace, name) or [])
        await client.delete(CONFIGMAPS, "new", namespace)
        await until(lambda: informer.get(namespace, "new") is None)


async def test_pods_are_found_by_their_owner(client: Client, namespace: str) -> None:
    def owner(raw: Object) -> str:
        return raw["metadata"]["labels"]["job"]

    informer = Informer(client, PODS, owner, namespace=namespace, index=lambda job: (job,))
    for number in range(6):
        await client.create(PODS, pod(f"p{number}", namespace, job=f"job-{number % 2}"))
    async with background(informer.run()):
        await until(informer.synced.is_set)
        assert [len(informer.by_index(job)) for job in ("job-0", "job-1", "job-2")] == [3, 3, 0]
        await client.delete(PODS, "p0", namespace, grace_seconds=0)
        await until(lambda: len(informer.by_index("job-0")) == 2)


async def test_a_write_of_our_own_is_seen_immediately_and_not_undone_by_the_watch(
    client: Client, namespace: str
) -> None:
    """The watch is stopped on purpose, and delivers the older states afterwards."""
    informer = new_informer(client, namespace)
    seen: list[str | None] = []
    informer.add_event_handler(lambda old, new: seen.append(new))
    async with background(informer.run()):
        await until(informer.synced.is_set)
    first = await client.create(CONFIGMAPS, configmap("a", namespace, x="1"))
    last = await client.patch(CONFIGMAPS, "a", namespace, {"data": {"x": "2"}})
    informer.record_write(last)
    informer.record_write(first)
    assert informer.get(namespace, "a") == "x=2"
    gone = await client.create(CONFIGMAPS, configmap("b", namespace, x="9"))
    informer.record_write(gone)
    await client.delete(CONFIGMAPS, "b", namespace)
    informer.record_delete(namespace, "b", gone["metadata"]["uid"])

    async with background(informer.run()):
        await client.create(CONFIGMAPS, configmap("end", namespace, x="end"))
        await until(lambda: informer.get(namespace, "end"))
    assert informer.get(namespace, "a") == "x=2"
    assert informer.get(namespace, "b") is None
    assert seen == ["x=2", "x=9", None, "x=end"]


async def test_a_restart_of_the_api_server_loses_nothing(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    informer = new_informer(client, namespace)
    await client.create(CONFIGMAPS, configmap("kept", namespace, x="1"))
    await client.create(CONFIGMAPS, configmap("gone", namespace, x="1"))
    async with background(informer.run()):
        await until(informer.synced.is_set)
        await asyncio.to_thread(control_plane.kill_apiserver)
        await until(lambda: informer.last_error)
        assert informer.get(namespace, "kept") == "x=1", "cached objects stay available"
        await asyncio.to_thread(control_plane.start_apiserver)
        await client.delete(CONFIGMAPS, "gone", namespace)
        await client.create(CONFIGMAPS, configmap("new", namespace, x="2"))
        await until(lambda: informer.get(namespace, "new"))
        await until(lambda: informer.get(namespace, "gone") is None)
        assert informer.get(namespace, "kept") == "x=1"
        assert informer.last_error == ""


async def test_a_compacted_history_means_a_new_list_and_nothing_is_lost(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    informer = new_informer(client, namespace)
    for name in ("changed", "gone", "kept"):
        await client.create(CONFIGMAPS, configmap(name, namespace, x="1"))
    async with background(informer.run()):
        await until(informer.synced.is_set)

    await client.patch(CONFIGMAPS, "changed", namespace, {"data": {"x": "2"}})
    await client.delete(CONFIGMAPS, "gone", namespace)
    await client.create(CONFIGMAPS, configmap("new", namespace, x="3"))
    await asyncio.to_thread(control_plane.kill_apiserver)
    await asyncio.to_thread(compact, control_plane)
    await asyncio.to_thread(control_plane.start_apiserver)

    seen: list[tuple[str | None, str | None]] = []
    informer.add_event_handler(lambda old, new: seen.append((old, new)))
    async with background(informer.run()):
        await until(lambda: len(seen) == 3)
    assert sorted(seen, key=str) == [("x=1", "x=2"), ("x=1", None), (None, "x=3")]
    assert informer.get(namespace, "kept") == "x=1"


async def test_a_kind_may_be_installed_later_and_removed_again(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer_module, "ABSENT_RETRY_SECONDS", 0.5)
    toys = Resource("example.test", "v1", "toys", kind="Toy")
    informer = Informer(client, toys, lambda raw: raw["metadata"]["name"], optional=True)
    async with background(informer.run()):
        await until(informer.synced.is_set)
        assert informer.absent
        await client.create(CRDS, toy_definition())
        await until(lambda: not informer.absent)
        toy = {"apiVersion": "example.test/v1", "kind": "Toy"}
        await client.create(toys, toy | {"metadata": {"name": "bear", "namespace": namespace}})
        await until(lambda: informer.get(namespace, "bear"))
        await client.delete(CRDS, "toys.example.test")
        await until(lambda: informer.absent)
        assert len(informer) == 0


def toy_definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": "toys.example.test"},
        "spec": {
            "group": "example.test",
            "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy"},
            "versions": [version],
        },
    }
