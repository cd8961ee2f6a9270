"""The operator's informers: which job a change belongs to, and how they are."""

from __future__ import annotations

import time
from typing import Any

from paddlejob import contract
from paddlejob.kube.resource import CONFIGMAPS, PODS, SERVICES
from paddlejob.objects.resources import PADDLEJOBS, POD_GROUPS, WORKLOADS
from tests.support.scripted_cluster import Object, Serve
from tests.unit.operator.stage import KEY, UID, staged, stored_job, stored_pod


def owned(kind: str) -> Object:
    pod = stored_pod(uid="u-1", resourceVersion="900", creationTimestamp="2027-01-15T08:00:00Z")[1]
    return {**pod, "kind": kind, "data": {}}


async def test_a_change_of_a_job_or_of_what_it_owns_is_a_change_of_the_job(serve: Serve):
    async with staged(serve) as stage:
        keys: list[tuple[str, str]] = []
        stage.informers.enqueue_changes(keys.append)

        def changed() -> list[tuple[str, str]]:
            taken = list(keys)
            keys.clear()
            return taken

        job = {**stored_job()[1]}
        job["metadata"] = {**job["metadata"], "resourceVersion": "900"}
        stage.informers.record_write(PADDLEJOBS, job)
        assert changed() == [KEY]
        stage.informers.record_delete(PADDLEJOBS, "default", "mnist", UID)
        assert changed() == [KEY], "also that it is gone"
        for resource in (PODS, SERVICES, CONFIGMAPS):
            stage.informers.record_write(resource, owned(resource.kind))
            assert changed() == [KEY]
            stage.informers.record_delete(resource, "default", "mnist-worker-0", "u-1")
            assert changed() == [KEY]


def pod_group(name: str, **metadata: Any) -> Object:
    about = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "900", **metadata}
    return {"kind": "PodGroup", "metadata": about, "status": {"phase": "Running"}}


async def test_a_pod_group_of_the_user_belongs_to_the_job_of_its_name(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        keys: list[tuple[str, str]] = []
        stage.informers.enqueue_changes(keys.append)
        stage.informers.record_write(POD_GROUPS, pod_group("mnist"))
        assert keys == [KEY]
        (group,) = (await stage.view()).world.pod_groups
        assert (group.name, group.owned, group.phase) == ("mnist", False, "Running")
        reference = stored_pod()[1]["metadata"]["ownerReferences"]
        stage.informers.record_write(POD_GROUPS, pod_group("mnist", ownerReferences=reference, resourceVersion="901"))
        assert [one.owned for one in (await stage.view()).world.pod_groups] == [True], (
            "and it is one, however it is found"
        )
        stage.informers.record_delete(POD_GROUPS, "default", "mnist", "uid-mnist")
        assert keys[-1] == KEY
        labelled = pod_group("of-another-name", labels={contract.LABEL_JOB: "mnist"})
        stage.informers.record_write(POD_GROUPS, labelled)
        assert keys[-1] == KEY, "its label says whose it is"


async def test_what_names_a_job_of_another_namespace_as_its_owner_does_not_belong_to_it(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        forged = {"namespace": "intruder", "uid": "u-1", "resourceVersion": "900"}
        for resource in (PODS, SERVICES, CONFIGMAPS, POD_GROUPS, WORKLOADS):
            made = owned(resource.kind)
            stage.informers.record_write(resource, made | {"metadata": made["metadata"] | forged})
        world = (await stage.view()).world
        assert not (world.pods or world.services or world.environments or world.pod_groups or world.queueing.workload)


async def test_the_last_contact_is_that_of_any_informer_and_those_that_fail_are_named(serve: Serve):
    async with staged(serve) as stage:
        stage.informers.services.last_contact = 1e12
        assert stage.informers.last_contact == 1e12
        assert stage.informers.failing == {}
        stage.informers.services.failing_since = time.monotonic() - 50
        ((resource, seconds),) = stage.informers.failing.items()
        assert resource == SERVICES
        assert 49 < seconds < 1000
