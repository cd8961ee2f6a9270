"""The cache against a real API server, also one that goes away and one that has lost its history."""

from __future__ import annotations

import asyncio
import time

import pytest

from paddlejob.kube import cache as cache_module
from paddlejob.kube.cache import Cache
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS, CRDS, PODS, Object, Resource

from .conftest import ControlPlane, compact
from .support import background, configmap, pod, until


def text(raw: Object) -> str:
    """The digest of these stories: the data and nothing else."""
    return ",".join(f"{key}={value}" for key, value in sorted((raw.get("data") or {}).items()))


def new_cache(client: Client, namespace: str) -> Cache[str]:
    return Cache(client, CONFIGMAPS, text, namespace=namespace, label_selector="app=test")


async def test_it_knows_what_was_there_and_what_comes_and_goes(client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, configmap("old", namespace, x="1"))
    cache = new_cache(client, namespace)
    heard: list[tuple[str | None, str | None]] = []
    cache.on_change(lambda old, new: heard.append((old, new)))
    async with background(cache.run()):
        await until(cache.synced.is_set)
        assert cache.get(namespace, "old") == "x=1"
        await client.create(CONFIGMAPS, configmap("new", namespace, x="2"))
        await until(lambda: cache.get(namespace, "new"))
        await client.patch(CONFIGMAPS, "new", namespace, {"data": {"x": "3"}})
        await until(lambda: cache.get(namespace, "new") == "x=3")
        await client.delete(CONFIGMAPS, "old", namespace)
        await until(lambda: cache.get(namespace, "old") is None)
    assert heard == [(None, "x=1"), (None, "x=2"), ("x=2", "x=3"), ("x=1", None)]
    assert time.monotonic() - cache.last_contact < 60


async def test_pods_are_found_by_their_owner(client: Client, namespace: str) -> None:
    def owner(raw: Object) -> str:
        return raw["metadata"]["labels"]["job"]

    cache = Cache(client, PODS, owner, namespace=namespace, index=lambda job: (job,))
    for number in range(6):
        await client.create(PODS, pod(f"p{number}", namespace, job=f"job-{number % 2}"))
    async with background(cache.run()):
        await until(cache.synced.is_set)
        assert [len(cache.having(job)) for job in ("job-0", "job-1", "job-2")] == [3, 3, 0]
        await client.delete(PODS, "p0", namespace, grace_seconds=0)
        await until(lambda: len(cache.having("job-0")) == 2)


async def test_an_own_write_is_seen_at_once_and_not_undone_by_the_watch(client: Client, namespace: str) -> None:
    """The watch is held up on purpose, and brings the older states afterwards."""
    cache = new_cache(client, namespace)
    seen: list[str | None] = []
    cache.on_change(lambda old, new: seen.append(new))
    async with background(cache.run()):
        await until(cache.synced.is_set)
    first = await client.create(CONFIGMAPS, configmap("a", namespace, x="1"))
    last = await client.patch(CONFIGMAPS, "a", namespace, {"data": {"x": "2"}})
    cache.learn(last)
    cache.learn(first)
    assert cache.get(namespace, "a") == "x=2"
    gone = await client.create(CONFIGMAPS, configmap("b", namespace, x="9"))
    cache.learn(gone)
    await client.delete(CONFIGMAPS, "b", namespace)
    cache.forget(namespace, "b", gone["metadata"]["uid"])

    async with background(cache.run()):
        await client.create(CONFIGMAPS, configmap("end", namespace, x="end"))
        await until(lambda: cache.get(namespace, "end"))
    assert cache.get(namespace, "a") == "x=2"
    assert cache.get(namespace, "b") is None
    assert seen == ["x=2", "x=9", None, "x=end"]


async def test_a_restart_of_the_api_server_loses_nothing(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    cache = new_cache(client, namespace)
    await client.create(CONFIGMAPS, configmap("kept", namespace, x="1"))
    await client.create(CONFIGMAPS, configmap("gone", namespace, x="1"))
    async with background(cache.run()):
        await until(cache.synced.is_set)
        await asyncio.to_thread(control_plane.kill_apiserver)
        await until(lambda: cache.reason)
        assert cache.get(namespace, "kept") == "x=1", "what is known stays known"
        await asyncio.to_thread(control_plane.start_apiserver)
        await client.delete(CONFIGMAPS, "gone", namespace)
        await client.create(CONFIGMAPS, configmap("new", namespace, x="2"))
        await until(lambda: cache.get(namespace, "new"))
        await until(lambda: cache.get(namespace, "gone") is None)
        assert cache.get(namespace, "kept") == "x=1"
        assert cache.reason == ""


async def test_a_history_compacted_away_means_a_new_list_and_nothing_is_lost(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    cache = new_cache(client, namespace)
    for name in ("changed", "gone", "kept"):
        await client.create(CONFIGMAPS, configmap(name, namespace, x="1"))
    async with background(cache.run()):
        await until(cache.synced.is_set)

    await client.patch(CONFIGMAPS, "changed", namespace, {"data": {"x": "2"}})
    await client.delete(CONFIGMAPS, "gone", namespace)
    await client.create(CONFIGMAPS, configmap("new", namespace, x="3"))
    await asyncio.to_thread(control_plane.kill_apiserver)
    await asyncio.to_thread(compact, control_plane)
    await asyncio.to_thread(control_plane.start_apiserver)

    heard: list[tuple[str | None, str | None]] = []
    cache.on_change(lambda old, new: heard.append((old, new)))
    async with background(cache.run()):
        await until(lambda: len(heard) == 3)
    assert sorted(heard, key=str) == [("x=1", "x=2"), ("x=1", None), (None, "x=3")]
    assert cache.get(namespace, "kept") == "x=1"


async def test_a_kind_may_be_installed_later_and_removed_again(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "ABSENT_PAUSE", 0.5)
    toys = Resource("example.test", "v1", "toys", kind="Toy")
    cache = Cache(client, toys, lambda raw: raw["metadata"]["name"])
    async with background(cache.run()):
        await until(cache.synced.is_set)
        assert cache.absent
        await client.create(CRDS, toy_definition())
        await until(lambda: not cache.absent)
        toy = {"apiVersion": "example.test/v1", "kind": "Toy"}
        await client.create(toys, toy | {"metadata": {"name": "bear", "namespace": namespace}})
        await until(lambda: cache.get(namespace, "bear"))
        await client.delete(CRDS, "toys.example.test")
        await until(lambda: cache.absent)
        assert len(cache) == 0


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
