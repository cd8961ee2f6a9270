"""Queues of Volcano and Kueue, from objects as their controllers write them."""

from __future__ import annotations

import pytest

from paddlejob import contract
from paddlejob.kube.client import Client
from paddlejob.targets.cluster import queues
from paddlejob.targets.cluster.parsing import job_view
from paddlejob.targets.cluster.queues import kueue_queue, read_queues, volcano_queue
from paddlejob.targets.views import JobView
from tests.support.builders import document
from tests.support.scripted_cluster import Object, ScriptedCluster, Serve, failure, listed


def waiting(name: str, queue: str, phase: str = "Pending", created: str = "2027-01-15T08:00:00Z") -> JobView:
    """A job in `volcano/QUEUE` or `kueue/QUEUE`."""
    scheduler, _, queue = queue.partition("/")
    volcano = {"schedulingPolicy": {"queue": queue}} if scheduler == "volcano" else {}
    made = document(name, labels={contract.LABEL_QUEUE: queue} if scheduler == "kueue" else None, **volcano)
    made["metadata"] |= {"namespace": "team", "creationTimestamp": created or None}
    return job_view({**made, "status": {"phase": phase}})


WAITING = [waiting("first", "volcano/night"), waiting("second", "kueue/gpus"), waiting("third", "volcano/default")]


def test_the_queue_of_a_job_is_that_of_its_scheduler():
    assert [one.queue for one in WAITING] == ["volcano/night", "kueue/team/gpus", "volcano/default"]
    assert waiting("none", "").queue == ""
    assert waiting("unnamed", "volcano/").queue == "volcano/default"


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


def kueue(served: str) -> ScriptedCluster:
    """A cluster with Kueue, and no Volcano."""
    api = ScriptedCluster()
    api.kueue = set(served.split())
    shared: Object = {"metadata": {"name": "research"}, "status": {"pendingWorkloads": 2}}
    own: Object = {
        "metadata": {"name": "gpus", "namespace": "team"},
        "spec": {"clusterQueue": "research"},
        "status": {"pendingWorkloads": 1, "conditions": [{"type": "Active", "status": "True"}]},
    }
    api.answers["GET", "clusterqueues"] = listed(shared)
    for path in ("localqueues", "team/localqueues"):
        api.answers["GET", path] = listed(own)
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


async def test_queues_of_both_schedulers_are_read_with_the_jobs_that_wait_oldest_first(
    api: ScriptedCluster, client: Client
):
    api.kueue = {"v1beta1"}
    api.answers["GET", "queues"] = listed({"metadata": {"name": "night"}})
    api.answers["GET", "clusterqueues"] = listed({"metadata": {"name": "research"}})
    local = {"metadata": {"name": "gpus", "namespace": "team"}, "spec": {"clusterQueue": "research"}}
    api.answers["GET", "localqueues"] = api.answers["GET", "team/localqueues"] = listed(local)
    rows = [
        waiting("new", "volcano/night", created="2027-01-15T09:00:00Z"),
        waiting("old", "volcano/night", "Suspended"),
        waiting("runs", "volcano/night", "Running"), waiting("k", "kueue/gpus", "Restarting"),
        waiting("unknown", "volcano/night", created=""), waiting("none", ""),
    ]  # fmt: skip
    for namespace in ("", "team"):
        night, research = await read_queues(client, namespace, rows)
        assert (night.kind, night.name, night.waiting) == ("Volcano", "night", ["team/unknown", "team/old", "team/new"])
        assert (research.kind, research.name, research.waiting) == ("Kueue", "research", ["team/k"])
    api.kueue = set()
    api.answers["GET", "queues"] = failure(403, "Forbidden")
    assert await read_queues(client, "", rows) == []


def test_a_queue_that_is_active_says_so_and_one_in_use_shows_it():
    conditions = [{"type": "Other", "status": "True"}, {"type": "Active", "status": "True", "reason": "Ready"}]
    usage = [{"resources": [{"name": "cpu", "total": "2"}, {"name": "pods", "total": "3"}, {"name": "memory"}]}]
    found = kueue_queue(
        {"metadata": {"name": "q"}, "status": {"conditions": conditions, "flavorsUsage": usage}}, [], []
    )
    assert (found.state, found.resources) == ("Active", {"cpu": (2.0, None), "memory": (0.0, None)})
    assert kueue_queue({"metadata": {"name": "q"}}, [], []).state == ""
    many = [waiting(f"j{index}", "volcano/q") for index in range(queues.MOST_WAITING + 1)]
    assert len(volcano_queue({"metadata": {"name": "q"}}, many).waiting) == queues.MOST_WAITING
