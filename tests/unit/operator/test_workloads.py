"""Kueue through the operator's backend, against a scripted API server: what is read, and how a Workload is written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paddlejob.engine.backend import Outdated, View
from paddlejob.engine.reconcile import Reconciler
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.operator.backend import KubeBackend
from paddlejob.operator.informers import Informers
from paddlejob.plan import UpdateWorkload
from paddlejob.plan.objects.workload import workload_manifest
from paddlejob.plan.workload import Condition, Priority
from tests.support.builders import document
from tests.support.kueue_model import QUEUE, queued_job
from tests.support.scripted_api import Object, ScriptedApi, failure
from tests.unit.kube.conftest import Serve, serve

__all__ = ["serve"]

KEY = ("default", "mnist")
JOB = "default/paddlejobs/mnist"
WORKLOAD = "default/workloads/paddlejob-mnist-uid-o"
UID = "uid-of-mnist"
ADMITTED = {
    "conditions": [
        {
            "type": "QuotaReserved",
            "status": "True",
            "reason": "QuotaReserved",
            "message": "",
            "lastTransitionTime": "t",
        },
        {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": "t"},
    ],
    "admission": {
        "clusterQueue": "all",
        "podSetAssignments": [{"name": "worker", "count": 2, "flavors": {"cpu": "ssd", "memory": "ssd"}}],
    },
}
FLAVOR = {"spec": {"nodeLabels": {"disk": "ssd"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}}


def stored_job(labels: dict[str, str] | None = None, **options: Any) -> tuple[str, Object]:
    made = document(labels={**QUEUE, **(labels or {})}, **options)
    made["metadata"] |= {"uid": UID, "generation": 1}
    return JOB, made


def stored_workload(status: Object | None = None) -> tuple[str, Object]:
    made = workload_manifest(queued_job(), "v1beta2", None)
    return WORKLOAD, made | {"status": status or {}}


class Stage:
    def __init__(self, api: ScriptedApi, client: Client) -> None:
        self.api = api
        self.informers = Informers(client, None)
        self.backend = KubeBackend(client, self.informers, EventRecorder(client, "paddlejob"))

    async def view(self) -> View:
        view = await self.backend.observe(KEY)
        assert view is not None
        return view

    async def update(self, **changes: Any) -> None:
        view = await self.view()
        assert view.world.queueing is not None and view.world.queueing.workload is not None
        await self.backend.perform(view.job, UpdateWorkload(view.world.queueing.workload, **changes))


@contextlib.asynccontextmanager
async def staged(serve: Serve, *objects: tuple[str, Object], versions: str = "v1beta2 v1beta1") -> AsyncIterator[Stage]:
    api = ScriptedApi(*objects)
    api.kueue = set(versions.split())
    async with Client(await serve(api.respond)) as client:
        stage = Stage(api, client)
        task = asyncio.create_task(stage.informers.run())
        try:
            async with asyncio.timeout(30):
                await stage.informers.wait_for_sync()
            yield stage
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.parametrize(("served", "used"), [("v1beta2 v1beta1", "v1beta2"), ("v1beta1", "v1beta1"), ("", "")])
async def test_the_newest_version_of_kueue_that_is_served_is_used(serve: Serve, served: str, used: str) -> None:
    async with staged(serve, stored_job(), versions=served) as stage:
        queueing = (await stage.view()).world.queueing
        assert queueing is not None and queueing.version == used
        await Reconciler(stage.backend).step(KEY)
        created = [one.body["apiVersion"] for one in stage.api.written("POST", "workloads")]
        assert created == ([f"kueue.x-k8s.io/{used}"] if used else [])
        assert not stage.api.written("POST", "pods")


async def test_the_assignment_and_its_flavor_are_read(serve: Serve) -> None:
    objects = (stored_job(), stored_workload(ADMITTED), ("resourceflavors/ssd", FLAVOR))
    async with staged(serve, *objects) as stage:
        queueing = (await stage.view()).world.queueing
        assert queueing is not None and queueing.workload is not None
        assert queueing.workload.may_run
        update = queueing.update_of("worker")
        assert update is not None
        assert (update.node_selector, update.tolerations) == ({"disk": "ssd"}, ({"key": "spot", "operator": "Exists"},))
        await Reconciler(stage.backend).step(KEY)
        pods = [one.body for one in stage.api.written("POST", "pods")]
        assert [one["spec"]["nodeSelector"] for one in pods] == [{"disk": "ssd"}] * 2


async def test_a_flavor_that_does_not_exist_keeps_pods_from_being_created(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_workload(ADMITTED)) as stage:
        await Reconciler(stage.backend).step(KEY)
        status = (await stage.view()).job.status
        assert (status.reason, stage.api.written("POST", "pods")) == ("FlavorUnreadable", [])
        assert "ResourceFlavor ssd does not exist" in status.message


async def test_a_flavor_that_may_not_be_read_names_the_remedy(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_workload(ADMITTED)) as stage:
        stage.api.answers["GET", "resourceflavors/ssd"] = failure(403, "Forbidden", "no")
        queueing = (await stage.view()).world.queueing
        assert queueing is not None and "needs a ClusterRole" in queueing.error


@pytest.mark.parametrize(
    ("labels", "template", "expected"),
    [
        ({"kueue.x-k8s.io/priority-class": "urgent"}, "", Priority("urgent", 9)),
        ({}, "high", Priority("high", 5, of_pods=True)),
        ({}, "", None),
    ],
)
async def test_the_priority_is_that_of_the_job_or_of_its_pods(
    serve: Serve, labels: dict[str, str], template: str, expected: Priority | None
) -> None:
    spec = {"priorityClassName": template, "containers": [{"name": "paddle", "image": "i"}]}
    made = stored_job(labels, worker_={"template": {"spec": spec}})
    classes = (("workloadpriorityclasses/urgent", {"value": 9}), ("priorityclasses/high", {"value": 5}))
    async with staged(serve, made, *classes) as stage:
        queueing = (await stage.view()).world.queueing
        assert queueing is not None and queueing.priority == expected


async def test_a_priority_class_that_does_not_exist_is_reported(serve: Serve) -> None:
    async with staged(serve, stored_job({"kueue.x-k8s.io/priority-class": "urgent"})) as stage:
        await Reconciler(stage.backend).step(KEY)
        status = (await stage.view()).job.status
        assert status.reason == "PriorityClassUnreadable"
        assert "WorkloadPriorityClass urgent does not exist" in status.message


async def test_giving_quota_back_clears_the_admission_and_keeps_other_conditions(serve: Serve) -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "m", "lastTransitionTime": "t"}
    status = {**ADMITTED, "conditions": [*ADMITTED["conditions"], evicted], "requeueState": {"count": 1}}
    async with staged(serve, stored_job(), stored_workload(status), ("resourceflavors/ssd", FLAVOR)) as stage:
        await stage.update(conditions=(Condition("QuotaReserved", False, "Pending", "m"),), release=True)
        (asked,) = stage.api.written("PUT", "workloads")
        assert asked.path == f"{WORKLOAD}/status"
        written = asked.body["status"]
        assert "admission" not in written
        assert written["requeueState"] == {"count": 1}
        found = {one["type"]: one["status"] for one in written["conditions"]}
        assert found == {"Admitted": "True", "Evicted": "True", "QuotaReserved": "False"}
        queueing = (await stage.view()).world.queueing
        assert queueing is not None and queueing.workload is not None and not queueing.workload.has_quota


async def test_a_workload_that_has_changed_since_it_was_read_is_not_written(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_workload(ADMITTED), ("resourceflavors/ssd", FLAVOR)) as stage:
        before = await stage.view()
        stage.api.put(*stored_workload({}))
        assert before.world.queueing is not None and before.world.queueing.workload is not None
        with pytest.raises(Outdated):
            await stage.backend.perform(before.job, UpdateWorkload(before.world.queueing.workload, release=True))
        assert not stage.api.written("PUT", "workloads")
        after = (await stage.view()).world.queueing
        assert after is not None and after.workload is not None and not after.workload.has_quota, "seen without a watch"


async def test_a_workload_that_is_gone_or_changes_meanwhile_is_looked_at_again(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_workload(ADMITTED), ("resourceflavors/ssd", FLAVOR)) as stage:
        stage.api.answers["PUT", f"{WORKLOAD}/status"] = failure(409, "Conflict")
        with pytest.raises(Outdated):
            await stage.update(release=True)
        stage.api.objects.pop(WORKLOAD)
        with pytest.raises(Outdated):
            await stage.update(release=True)


async def test_finished_workers_are_reported_as_reclaimable(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_workload(ADMITTED), ("resourceflavors/ssd", FLAVOR)) as stage:
        await stage.update(reclaimable={"worker": 1})
        (asked,) = stage.api.written("PUT", "workloads")
        assert asked.body["status"]["reclaimablePods"] == [{"name": "worker", "count": 1}]


async def test_a_condition_that_stays_as_it_was_keeps_its_time(serve: Serve) -> None:
    async with staged(serve, stored_job(), stored_workload(ADMITTED), ("resourceflavors/ssd", FLAVOR)) as stage:
        await stage.update(conditions=(Condition("Admitted", True, "Admitted", "again"),))
        (asked,) = stage.api.written("PUT", "workloads")
        assert asked.body["status"]["conditions"][-1]["lastTransitionTime"] == "t"
