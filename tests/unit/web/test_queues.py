"""Queues of Volcano and Kueue, from objects as their controllers write them."""

from __future__ import annotations

import pytest

from paddlejob.kube.client import Client
from paddlejob.web.sources.cluster.queues import kueue_queue, read_queues, volcano_queue
from paddlejob.web.views.row import Row
from tests.support.scripted_api import Object, ScriptedApi, failure
from tests.unit.kube.conftest import Serve, serve

__all__ = ["serve"]

WAITING = [
    Row("cluster", "team", "first", "Pending", queue="volcano/night"),
    Row("cluster", "team", "second", "Pending", queue="kueue/team/gpus"),
    Row("cluster", "team", "third", "Pending", queue="volcano/default"),
]


def test_a_queue_of_volcano_shows_what_is_allocated_and_its_limit():
    queue = {
        "metadata": {"name": "night"},
        "spec": {"weight": 1, "capability": {"cpu": "8", "memory": "16Gi"}},
        "status": {
            "state": "Open", "pending": 1, "inqueue": 2, "running": 3,
            "allocated": {"cpu": "3500m", "memory": "1Gi", "nvidia.com/gpu": "2", "pods": "9"},
        },
    }  # fmt: skip
    found = volcano_queue(queue, WAITING)
    assert (found.name, found.state, found.pending, found.running) == ("night", "Open", 3, 3)
    assert found.resources == {"cpu": (3.5, 8), "memory": (1024**3, 16 * 1024**3), "nvidia.com/gpu": (2, None)}
    assert found.waiting == ["team/first"]


def test_a_queue_of_kueue_sums_its_flavors_and_knows_the_local_queues_that_feed_it():
    quotas = [{"name": "cpu", "nominalQuota": 4}, {"name": "nvidia.com/gpu", "nominalQuota": "8"}]
    queue = {
        "metadata": {"name": "research"},
        "spec": {
            "resourceGroups": [
                {"flavors": [{"name": "a", "resources": quotas}, {"name": "b", "resources": quotas[:1]}]}
            ]
        },
        "status": {
            "pendingWorkloads": 2,
            "admittedWorkloads": 1,
            "flavorsReservation": [{"name": "a", "resources": [{"name": "cpu", "total": "1500m", "borrowed": "0"}]}],
            "conditions": [{"type": "Active", "status": "False", "reason": "FlavorNotFound"}],
        },
    }
    feeding = [
        {"metadata": {"name": "gpus", "namespace": "team"}, "spec": {"clusterQueue": "research"}},
        {"metadata": {"name": "other", "namespace": "team"}, "spec": {"clusterQueue": "else"}},
    ]
    found = kueue_queue(queue, feeding, WAITING)
    assert (found.state, found.pending, found.running) == ("FlavorNotFound", 2, 1)
    assert found.resources == {"cpu": (1.5, 8), "nvidia.com/gpu": (0, 8)}
    assert found.waiting == ["team/second"]


def test_a_queue_without_a_status_is_shown_as_empty():
    assert volcano_queue({"metadata": {"name": "new"}}, []).resources == {}
    assert kueue_queue({"metadata": {"name": "new"}}, [], []).pending == 0


def kueue(served: str) -> ScriptedApi:
    """A cluster with Kueue, and no Volcano."""
    api = ScriptedApi()
    api.kueue = set(served.split())
    shared: Object = {"metadata": {"name": "research"}, "status": {"pendingWorkloads": 2}}
    own: Object = {
        "metadata": {"name": "gpus", "namespace": "team"},
        "spec": {"clusterQueue": "research"},
        "status": {"pendingWorkloads": 1, "conditions": [{"type": "Active", "status": "True"}]},
    }
    api.answers["GET", "clusterqueues"] = 200, {"metadata": {}, "items": [shared]}
    for path in ("localqueues", "team/localqueues"):
        api.answers["GET", path] = 200, {"metadata": {}, "items": [own]}
    return api


@pytest.mark.parametrize("served", ["v1beta2 v1beta1", "v1beta2", "v1beta1"])
async def test_the_version_of_kueue_that_is_served_is_read(serve: Serve, served: str):
    async with Client(await serve(kueue(served).respond)) as client:
        (found,) = await read_queues(client, "", WAITING)
    assert (found.name, found.pending, found.waiting) == ("research", 2, ["team/second"])


async def test_a_user_who_may_not_list_cluster_queues_sees_the_queue_to_submit_to(serve: Serve):
    api = kueue("v1beta2 v1beta1")
    api.answers["GET", "clusterqueues"] = failure(403, "Forbidden")
    async with Client(await serve(api.respond)) as client:
        (found,) = await read_queues(client, "team", WAITING)
    assert (found.name, found.state, found.pending, found.waiting) == ("team/gpus", "Active", 1, ["team/second"])


async def test_a_cluster_without_queues_shows_none(serve: Serve):
    async with Client(await serve(kueue("").respond)) as client:
        assert await read_queues(client, "", WAITING) == []
