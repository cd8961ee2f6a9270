"""Kueue through the operator's backend, against a scripted API server: what is read, and how a Workload is written."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from paddlejob.engine.backend import Outdated
from paddlejob.engine.reconcile import Reconciler
from paddlejob.operator import workloads
from paddlejob.operator.workloads import updated_status
from paddlejob.plan import UpdateWorkload
from paddlejob.plan.manifests.workload import workload_manifest
from paddlejob.plan.workload import Condition, Priority, Queueing, Workload
from tests.support.builders import NOON
from tests.support.kueue_model import QUEUE, queued_job
from tests.support.scripted_cluster import Object, Serve, failure
from tests.unit.operator.stage import KEY, Stage, staged, stored_job

WORKLOAD = "default/workloads/paddlejob-mnist-uid-o"
RESERVED: Object = {
    "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "", "lastTransitionTime": "t",
}  # fmt: skip
ADMITTED: Object = {
    "conditions": [RESERVED, {**RESERVED, "type": "Admitted", "reason": "Admitted"}],
    "admission": {
        "clusterQueue": "all",
        "podSetAssignments": [{"name": "worker", "count": 2, "flavors": {"cpu": "ssd", "memory": "ssd"}}],
    },
}
FLAVOR = {"spec": {"nodeLabels": {"disk": "ssd"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}}


SSD = ("resourceflavors/ssd", FLAVOR)


def queued(labels: dict[str, str] | None = None, **options: Any) -> tuple[str, Object]:
    return stored_job(labels={**QUEUE, **(labels or {})}, **options)


def stored_workload(status: Object | None = None) -> tuple[str, Object]:
    return WORKLOAD, workload_manifest(queued_job(), "v1beta2", None) | {"status": status or {}}


def kueue(
    serve: Serve, *objects: tuple[str, Object], versions: str = "v1beta2 v1beta1"
) -> contextlib.AbstractAsyncContextManager[Stage]:
    return staged(serve, *objects, kueue=versions)


async def queueing_of(stage: Stage) -> Queueing:
    found = (await stage.view()).world.queueing
    assert found is not None
    return found


async def workload_of(stage: Stage) -> Workload:
    found = (await queueing_of(stage)).workload
    assert found is not None
    return found


async def update(stage: Stage, **changes: Any) -> None:
    await stage.perform(UpdateWorkload(await workload_of(stage), **changes))


@pytest.mark.parametrize(("served", "used"), [("v1beta2 v1beta1", "v1beta2"), ("v1beta1", "v1beta1"), ("", "")])
async def test_the_newest_version_of_kueue_that_is_served_is_used(serve: Serve, served: str, used: str) -> None:
    async with kueue(serve, queued(), versions=served) as stage:
        assert (await queueing_of(stage)).version == used
        await Reconciler(stage.backend).step(KEY)
        created = [one.body["apiVersion"] for one in stage.api.written("POST", "workloads")]
        assert created == ([f"kueue.x-k8s.io/{used}"] if used else [])
        assert not stage.api.written("POST", "pods")


async def test_the_assignment_and_its_flavor_are_read(serve: Serve) -> None:
    objects = (queued(), stored_workload(ADMITTED), SSD)
    async with kueue(serve, *objects) as stage:
        assert (await workload_of(stage)).may_run
        found = (await queueing_of(stage)).update_of("worker")
        assert (found.node_selector, found.tolerations) == ({"disk": "ssd"}, ({"key": "spot", "operator": "Exists"},))
        await Reconciler(stage.backend).step(KEY)
        pods = [one.body for one in stage.api.written("POST", "pods")]
        assert [one["spec"]["nodeSelector"] for one in pods] == [{"disk": "ssd"}] * 2


async def test_a_flavor_that_does_not_exist_keeps_pods_from_being_created(serve: Serve) -> None:
    async with kueue(serve, queued(), stored_workload(ADMITTED)) as stage:
        await Reconciler(stage.backend).step(KEY)
        status = (await stage.view()).job.status
        assert (status.reason, stage.api.written("POST", "pods")) == ("FlavorUnreadable", [])
        assert "ResourceFlavor ssd does not exist" in status.message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (failure(404, "NotFound"), "ResourceFlavor ssd does not exist; create it, or name another"),
        (
            failure(403, "Forbidden", "no"),
            "ResourceFlavor ssd cannot be read; an operator of one namespace needs a Clus",
        ),
        (failure(500, "x", "oh"), "ResourceFlavor ssd cannot be read; retrying: "),
    ],
)
async def test_a_flavor_that_cannot_be_read_says_why_and_is_tried_again(
    serve: Serve, answer: tuple[int, Object], message: str
) -> None:
    async with kueue(serve, queued(), stored_workload(ADMITTED), SSD) as stage:
        stage.api.answers["GET", "resourceflavors/ssd"] = answer
        assert message in (await queueing_of(stage)).error
        del stage.api.answers["GET", "resourceflavors/ssd"]
        assert (await queueing_of(stage)).error == ""


async def test_a_class_or_flavor_is_remembered_for_a_while(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    async with kueue(serve, queued(), stored_workload(ADMITTED), SSD) as stage:
        monkeypatch.setattr(workloads.time, "monotonic", lambda: now[0])

        async def selector() -> object:
            return (await queueing_of(stage)).update_of("worker").node_selector

        assert await selector() == {"disk": "ssd"}
        stage.api.put("resourceflavors/ssd", {"spec": {"nodeLabels": {"disk": "new"}}})
        now[0] += 19
        assert await selector() == {"disk": "ssd"}
        now[0] += 2
        assert await selector() == {"disk": "new"}


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
    made = queued(labels, worker_={"template": {"spec": spec}})
    classes = (("workloadpriorityclasses/urgent", {"value": 9}), ("priorityclasses/high", {"value": 5}))
    async with kueue(serve, made, *classes) as stage:
        assert (await queueing_of(stage)).priority == expected


async def test_a_priority_class_that_does_not_exist_is_reported(serve: Serve) -> None:
    async with kueue(serve, queued({"kueue.x-k8s.io/priority-class": "urgent"})) as stage:
        await Reconciler(stage.backend).step(KEY)
        status = (await stage.view()).job.status
        assert status.reason == "PriorityClassUnreadable"
        assert "WorkloadPriorityClass urgent does not exist" in status.message


async def test_giving_quota_back_clears_the_admission_and_keeps_other_conditions(serve: Serve) -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "m", "lastTransitionTime": "t"}
    status = {**ADMITTED, "conditions": [*ADMITTED["conditions"], evicted], "requeueState": {"count": 1}}
    async with kueue(serve, queued(), stored_workload(status), SSD) as stage:
        await update(stage, conditions=(Condition("QuotaReserved", False, "Pending", "m"),), release=True)
        (asked,) = stage.api.written("PUT", "workloads")
        assert asked.path == f"{WORKLOAD}/status"
        written = asked.body["status"]
        assert "admission" not in written
        assert written["requeueState"] == {"count": 1}
        found = {one["type"]: one["status"] for one in written["conditions"]}
        assert found == {"Admitted": "True", "Evicted": "True", "QuotaReserved": "False"}
        assert not (await workload_of(stage)).has_quota


async def test_a_workload_that_has_changed_since_it_was_read_is_not_written(serve: Serve) -> None:
    async with kueue(serve, queued(), stored_workload(ADMITTED), SSD) as stage:
        stage.api.put(*stored_workload({}))
        with pytest.raises(Outdated):
            await update(stage, release=True)
        assert not stage.api.written("PUT", "workloads")
        assert not (await workload_of(stage)).has_quota, "seen without a watch"


async def test_a_workload_that_is_gone_or_changes_meanwhile_is_looked_at_again(serve: Serve) -> None:
    async with kueue(serve, queued(), stored_workload(ADMITTED), SSD) as stage:
        stage.api.answers["PUT", f"{WORKLOAD}/status"] = failure(409, "Conflict")
        with pytest.raises(Outdated):
            await update(stage, release=True)
        stage.api.objects.pop(WORKLOAD)
        with pytest.raises(Outdated):
            await update(stage, release=True)


async def test_finished_workers_are_reported_as_reclaimable(serve: Serve) -> None:
    async with kueue(serve, queued(), stored_workload(ADMITTED), SSD) as stage:
        await update(stage, reclaimable={"worker": 1})
        (asked,) = stage.api.written("PUT", "workloads")
        assert asked.body["status"]["reclaimablePods"] == [{"name": "worker", "count": 1}]


async def test_a_condition_that_stays_as_it_was_keeps_its_time(serve: Serve) -> None:
    async with kueue(serve, queued(), stored_workload(ADMITTED), SSD) as stage:
        await update(stage, conditions=(Condition("Admitted", True, "Admitted", "again"),))
        (asked,) = stage.api.written("PUT", "workloads")
        assert asked.body["status"]["conditions"][-1]["lastTransitionTime"] == "t"


def test_a_workload_that_has_no_status_yet_gets_one():
    workload = Workload("w", "u", "1")
    action = UpdateWorkload(workload, (Condition("Finished", True, "Done", "m"),), {"worker": 1}, release=True)
    for before in ({"metadata": {"generation": 3}}, {"metadata": {"generation": 3}, "status": None}):
        assert updated_status(before, action, NOON) == {
            "conditions": [
                {
                    "type": "Finished", "status": "True", "reason": "Done", "message": "m", "observedGeneration": 3,
                    "lastTransitionTime": "2027-01-15T08:00:00Z",
                }
            ],
            "reclaimablePods": [{"name": "worker", "count": 1}],
        }  # fmt: skip
    nothing = UpdateWorkload(workload)
    assert updated_status({"metadata": {}, "status": {"admission": {}}}, nothing, NOON) == {"admission": {}}
