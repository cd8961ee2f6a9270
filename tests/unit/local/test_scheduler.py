"""The scheduler: a job is bound as a whole or waits with a message, and gives back all that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Role
from paddlejob.local.job import LocalJob
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import new_pod
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.state.store import JobStore
from paddlejob.plan.manifests.build_mark import build_mark
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import NOON, document, template
from tests.support.fake_gpus import fake_gpus

MACHINE = Machine("laptop", cpus=4, memory=8 << 30, gpus=fake_gpus(2))
ONE_GPU = {"nvidia.com/gpu": 1}


class Cluster:
    """Jobs with pending pods on one machine."""

    def __init__(self, root: Path) -> None:
        self.store = JobStore(root)
        self.scheduler = Scheduler(self.store, MACHINE)
        self.changes = 0
        self._jobs: list[LocalJob] = []

    def job(
        self, name: str, workers: int = 2, requests: int = 0, overcommit: bool = False, **limits: Any
    ) -> tuple[LocalJob, PaddleJob]:
        """With `requests` it is elastic."""
        worker = {"template": template(resources={"limits": limits})} | ({"requests": requests} if requests else {})
        made = document(name, workers=workers, worker_=worker, elastic=1 if requests else 0)
        folder, lock = self.store.begin(made, RunOptions(overcommit=overcommit), NOON)
        job = folder.job()
        assert job is not None
        local = LocalJob(folder, lock, on_change=self._count)
        self._jobs.append(local)
        for role, spec in job.spec.roles.items():
            for index in range(spec.replicas):
                manifest = pod_manifest(job, role, index, 1, build_mark(job))
                local.add(new_pod(f"{name}-{index}", manifest, folder.path / "pods", NOON))
        return local, job

    def _count(self) -> None:
        self.changes += 1

    def close(self) -> None:
        for job in self._jobs:
            job.allocation.clear()
            job.release()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def test_a_job_that_fits_is_bound(cluster: Cluster):
    local, job = cluster.job("one", cpu=1)
    cluster.scheduler.schedule(local, job)
    assert [pod.seen.node for pod in local.pods.values()] == ["laptop"] * 2
    assert local.unbound_pods() == []


def test_a_job_that_does_not_fit_waits_as_a_whole_and_its_pods_say_why(cluster: Cluster):
    cluster.scheduler.schedule(*cluster.job("first", cpu=1))
    local, job = cluster.job("second", workers=3, cpu=1)
    cluster.scheduler.schedule(local, job)
    seen = [pod.seen for pod in local.pods.values()]
    assert [(pod.node, pod.reason) for pod in seen] == [("", "Unschedulable")] * 3
    assert "insufficient cpu: the job requests 3 and this machine has 4; other jobs hold first (2)" in seen[0].message


def test_a_job_that_was_scaled_beyond_what_fits_waits_as_a_whole(cluster: Cluster):
    local, job = cluster.job("one", cpu=1)
    cluster.scheduler.schedule(local, job)
    stored = job.model_dump(mode="json")
    stored["spec"]["worker"]["replicas"] = 5
    larger = PaddleJob.model_validate(stored)
    remove(local, 0, 1)
    for index in range(5):
        add(local, larger, index, attempt=2)
    cluster.scheduler.schedule(local, larger)
    assert bound(local) == []


def bound(local: LocalJob) -> list[int]:
    return [pod.seen.index for pod in local.pods.values() if pod.seen.node]


def remove(local: LocalJob, *indexes: int) -> None:
    for pod in [pod for pod in local.pods.values() if pod.seen.index in indexes]:
        local.remove(pod)


def add(local: LocalJob, job: PaddleJob, index: int, attempt: int) -> None:
    manifest = pod_manifest(job, Role.WORKER, index, attempt, build_mark(job))
    uid = f"{job.name}-{index}-{attempt}"
    local.add(new_pod(uid, manifest, local.folder.path / "pods", NOON))


def test_a_pod_that_is_replaced_is_bound_to_what_its_job_holds_without_reserving_it_again(cluster: Cluster):
    local, job = cluster.job("one", cpu=1)
    cluster.scheduler.schedule(local, job)
    (local.folder.path / "claim.json").unlink()
    remove(local, 0)
    add(local, job, 0, attempt=2)
    cluster.scheduler.schedule(local, job)
    assert bound(local) == [1, 0]
    assert not (local.folder.path / "claim.json").exists()


def test_of_an_elastic_job_as_many_workers_are_bound_as_fit(cluster: Cluster):
    cluster.scheduler.schedule(*cluster.job("first", workers=1, cpu=1))
    local, job = cluster.job("elastic", workers=4, requests=2, cpu=1)
    cluster.scheduler.schedule(local, job)
    assert bound(local) == [0, 1, 2]
    (left,) = local.unbound_pods()
    assert left.seen.reason == "Unschedulable"
    assert "the job requests 4 and this machine has 4; other jobs hold first (1)" in left.seen.message


def test_of_an_elastic_job_none_is_bound_while_fewer_than_requested_fit(cluster: Cluster):
    cluster.scheduler.schedule(*cluster.job("first", workers=3, cpu=1))
    local, job = cluster.job("elastic", workers=4, requests=2, cpu=1)
    cluster.scheduler.schedule(local, job)
    assert bound(local) == []
    other = cluster.job("other", workers=1, cpu=1)
    cluster.scheduler.schedule(*other)
    assert bound(other[0]) == [0], "it holds nothing while it waits"


def test_an_elastic_job_keeps_what_it_holds_when_its_pods_are_replaced_and_takes_more_when_it_grows(cluster: Cluster):
    first = cluster.job("first", workers=1, cpu=1)
    cluster.scheduler.schedule(*first)
    local, job = cluster.job("elastic", workers=4, requests=2, cpu=1)
    cluster.scheduler.schedule(local, job)
    remove(local, 3)
    status = {"attempt": 1, "worker": {"members": "0-2"}}
    job = PaddleJob.model_validate(job.model_dump(mode="json") | {"status": status})
    add(local, job, 3, attempt=2)
    cluster.scheduler.schedule(local, job)
    assert bound(local) == [0, 1, 2]
    cluster.scheduler.release(first[0])
    cluster.scheduler.schedule(local, job)
    assert bound(local) == [0, 1, 2, 3]
    remove(local, 0, 1, 2)
    waits = cluster.job("waits", workers=1, cpu=1)
    cluster.scheduler.schedule(*waits)
    assert bound(waits[0]) == [], "the pods are about to be created again"
    for index in range(3):
        add(local, job, index, attempt=2)
    cluster.scheduler.schedule(local, job)
    assert sorted(bound(local)) == [0, 1, 2, 3]


def test_an_elastic_job_that_was_scaled_down_gives_back_what_it_no_longer_needs(cluster: Cluster):
    local, job = cluster.job("elastic", workers=2, requests=1, cpu=2, **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    stored = job.model_dump(mode="json")
    stored["spec"]["worker"]["replicas"] = 1
    smaller = PaddleJob.model_validate(stored)
    remove(local, 0, 1)
    add(local, smaller, 0, attempt=2)
    cluster.scheduler.schedule(local, smaller)
    assert bound(local) == [0]
    other = cluster.job("other", workers=1, cpu=2, **ONE_GPU)
    cluster.scheduler.schedule(*other)
    assert bound(other[0]) == [0]
    assert [pod.gpus for pod in other[0].pods.values()] == [[MACHINE.gpus[1]]]


def test_trying_again_in_vain_changes_nothing(cluster: Cluster):
    cluster.scheduler.schedule(*cluster.job("first", cpu=2))
    local, job = cluster.job("second", cpu=1)
    cluster.scheduler.schedule(local, job)
    before = cluster.changes
    cluster.scheduler.schedule(local, job)
    assert cluster.changes == before


def test_a_waiting_job_is_bound_when_another_has_released_its_resources(cluster: Cluster):
    first = cluster.job("first", cpu=2)
    cluster.scheduler.schedule(*first)
    local, job = cluster.job("second", cpu=2)
    cluster.scheduler.schedule(local, job)
    cluster.scheduler.release(first[0])
    cluster.scheduler.schedule(local, job)
    assert [(pod.seen.reason, pod.seen.message) for pod in local.pods.values()] == [("", "")] * 2
    assert local.unbound_pods() == []


def test_a_job_that_overcommits_does_not_wait(cluster: Cluster):
    local, job = cluster.job("greedy", cpu=99)
    cluster.scheduler.schedule(local, job)
    assert "lower requests or replicas" in next(iter(local.pods.values())).seen.message
    local, job = cluster.job("greedier", cpu=99, overcommit=True)
    cluster.scheduler.schedule(local, job)
    assert local.unbound_pods() == []


def test_each_pod_is_bound_with_gpus_of_its_own(cluster: Cluster):
    local, job = cluster.job("one", **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    assert [pod.gpus for pod in local.pods.values()] == [[gpu] for gpu in MACHINE.gpus]


def test_a_job_that_waits_for_gpus_holds_none_and_gets_those_that_other_jobs_release(cluster: Cluster):
    first = cluster.job("first", workers=1, **ONE_GPU)
    cluster.scheduler.schedule(*first)
    local, job = cluster.job("second", **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    message = next(iter(local.pods.values())).seen.message
    assert "the job requests 2 and this machine has 2; other jobs hold first (1)" in message
    third = cluster.job("third", workers=1, **ONE_GPU)
    cluster.scheduler.schedule(*third)
    assert third[0].unbound_pods() == [], "the second job left a GPU that it could not use"
    for held in (first, third):
        cluster.scheduler.release(held[0])
    cluster.scheduler.schedule(local, job)
    assert [pod.gpus for pod in local.pods.values()] == [[gpu] for gpu in MACHINE.gpus]


def test_a_job_that_grows_keeps_the_gpus_of_its_running_pods(cluster: Cluster):
    before = cluster.job("before", workers=1, **ONE_GPU)
    cluster.scheduler.schedule(*before)
    local, job = cluster.job("elastic", workers=1, **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    cluster.scheduler.release(before[0])
    stored = job.model_dump(mode="json")
    stored["spec"]["worker"]["replicas"] = 2
    grown = PaddleJob.model_validate(stored)
    manifest = pod_manifest(grown, Role.WORKER, 1, 1, build_mark(grown))
    local.add(new_pod("elastic-1", manifest, local.folder.path / "pods", NOON))
    cluster.scheduler.schedule(local, grown)
    assert [pod.gpus for pod in local.pods.values()] == [[MACHINE.gpus[1]], [MACHINE.gpus[0]]]


def test_overcommit_shares_a_gpu_and_records_it_on_the_job(cluster: Cluster):
    cluster.scheduler.schedule(*cluster.job("first", workers=2, **ONE_GPU))
    local, job = cluster.job("second", workers=1, overcommit=True, **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    assert [pod.gpus for pod in local.pods.values()] == [[MACHINE.gpus[0]]]
    (event,) = local.folder.events()
    assert (event["reason"], event["warning"]) == ("GPUShared", True)
    assert MACHINE.gpus[0].uuid in event["message"]


def test_a_job_that_may_overcommit_shares_no_gpu_while_enough_are_free(cluster: Cluster):
    local, job = cluster.job("modest", workers=2, overcommit=True, **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    assert [pod.gpus for pod in local.pods.values()] == [[gpu] for gpu in MACHINE.gpus]
    assert local.folder.events() == []


def test_overcommit_never_gives_one_gpu_to_two_pods_of_a_job(cluster: Cluster):
    local, job = cluster.job("greedy", workers=3, overcommit=True, **ONE_GPU)
    cluster.scheduler.schedule(local, job)
    assert len(local.unbound_pods()) == 3
    message = next(iter(local.pods.values())).seen.message
    assert "the job requests 3 and this machine has 2" in message


def test_ports_are_reserved_once_and_given_back_with_everything_else(cluster: Cluster):
    local, job = cluster.job("one", cpu=1)
    cluster.scheduler.reserve_ports(local)
    port = local.allocation.port
    cluster.scheduler.reserve_ports(local)
    assert local.allocation.port == port is not None
    cluster.scheduler.schedule(local, job)
    assert (local.folder.path / "claim.json").exists()
    cluster.scheduler.release(local)
    assert local.allocation.port is None
    assert local.allocation.resources is None
    assert not (local.folder.path / "claim.json").exists()
    again = PortBlock()
    assert again.first <= port, "the block is free again"
    again.close()
