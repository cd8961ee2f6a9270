"""How jobs share the machine: what they hold, what they wait for, and GPUs that others use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Role
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.machine.gpu_locks import lock_gpus
from paddlejob.local.machine.reservations import FILE, Reservations, gpus_of_pods, held_by_jobs
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.locks import ProcessLock
from tests.support.builders import NOON, document, template
from tests.support.fake_gpus import fake_gpus

GPU = "nvidia.com/gpu"


class Jobs:
    """Jobs that compete for one machine, each as if it had a runner of its own."""

    def __init__(self, root: Path) -> None:
        self.store = JobStore(root)
        self.machine = Machine("pc", cpus=1, memory=8 << 30, gpus=fake_gpus(4))
        self.reservations = Reservations(self.store, self.machine)
        self.held: dict[str, tuple[JobFolder, ProcessLock, Allocation]] = {}

    def begin(self, name: str, namespace: str = "default", **roles: tuple[int, dict[str, Any]]) -> JobFolder:
        made = document(name, workers=0)
        made["metadata"]["namespace"] = namespace
        for role, (replicas, limits) in roles.items():
            made["spec"][role] = {"replicas": replicas, "template": template(resources={"limits": limits})}
        folder, lock = self.store.begin(made, RunOptions(), NOON)
        self.held[name] = folder, lock, Allocation()
        return folder

    def reserve(self, name: str, overcommit: bool = False, slots: Any = None) -> str:
        folder, _, allocation = self.held[name]
        job = folder.job()
        assert job is not None
        chosen = job.spec.slots if slots is None else slots
        return self.reservations.reserve(job, folder, allocation, overcommit, chosen)

    def gpus(self, name: str) -> dict[str, list[str]]:
        shown = {gpu.uuid: gpu.visible_as for gpu in self.machine.gpus}
        return {pod: [shown[one] for one in given] for pod, given in gpus_of_pods(self.held[name][0]).items()}


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(tmp_path)
    yield made
    for _, lock, allocation in made.held.values():
        allocation.clear()
        lock.release()


def test_amounts_that_just_fit_fit_and_the_next_job_learns_who_holds_the_rest(jobs: Jobs):
    """Whatever their binary fractions are."""
    jobs.begin("one", worker=(3, {"cpu": "100m"}))
    jobs.begin("two", "team", worker=(7, {"cpu": "100m"}))
    assert (jobs.reserve("one"), jobs.reserve("two")) == ("", "")
    jobs.begin("three", worker=(1, {"cpu": "1m"}))
    assert jobs.reserve("three") == (
        "insufficient cpu: the job requests 0.001 and this machine has 1; other jobs hold one (0.3), team/two (0.7); "
        "the job starts when they have released enough"
    )
    assert jobs.reserve("three", overcommit=True) == ""


def test_a_job_that_never_fits_is_asked_to_request_less(jobs: Jobs):
    folder = jobs.begin("one", worker=(1, {"cpu": 2}))
    assert jobs.reserve("one") == (
        "insufficient cpu: the job requests 2 and this machine has 1; lower requests or replicas"
    )
    assert not (folder.path / FILE).exists()


def test_a_job_that_requests_nothing_that_is_counted_never_waits(jobs: Jobs):
    folder = jobs.begin("one", worker=(2, {}))
    assert jobs.reserve("one") == ""
    assert not (folder.path / FILE).exists()
    assert (held_by_jobs(jobs.store), gpus_of_pods(folder)) == ({}, {})
    jobs.begin("two", worker=(1, {"ephemeral-storage": "999Ti"}))
    assert jobs.reserve("two") == ""


def test_overcommitting_makes_neither_gpus_nor_other_devices(jobs: Jobs):
    jobs.begin("one", worker=(5, {GPU: 1}))
    assert "the job requests 5 and this machine has 4" in jobs.reserve("one", overcommit=True)
    assert jobs.gpus("one") == {}
    jobs.begin("two", worker=(1, {"kunlunxin.com/xpu": 1}))
    assert "the job requests 1 and this machine has 0" in jobs.reserve("two", overcommit=True)


def test_gpus_are_assigned_in_the_order_in_which_pods_are_created(jobs: Jobs):
    jobs.begin("one", worker=(1, {GPU: 2}), ps=(2, {GPU: 1}))
    assert jobs.reserve("one") == ""
    assert jobs.gpus("one") == {"one-ps-0": ["0"], "one-ps-1": ["1"], "one-worker-0": ["2", "3"]}
    jobs.held["one"][2].clear()
    assert jobs.reserve("one", slots=[(Role.PS, 1), (Role.PS, 0)]) == ""
    assert jobs.gpus("one") == {"one-ps-0": ["0"], "one-ps-1": ["1"]}, "however the replicas are listed"


def test_a_pod_keeps_its_gpus_when_its_job_reserves_again_and_others_are_given_back(jobs: Jobs):
    jobs.begin("one", worker=(3, {GPU: 1}))
    assert jobs.reserve("one", slots=[(Role.WORKER, 1)]) == ""
    assert jobs.gpus("one") == {"one-worker-1": ["0"]}
    assert jobs.reserve("one") == ""
    assert jobs.gpus("one") == {"one-worker-1": ["0"], "one-worker-0": ["1"], "one-worker-2": ["2"]}
    assert jobs.reserve("one", slots=[(Role.WORKER, 2)]) == ""
    assert jobs.gpus("one") == {"one-worker-2": ["2"]}
    jobs.begin("two", worker=(3, {GPU: 1}))
    assert jobs.reserve("two") == ""
    assert jobs.gpus("two") == {"two-worker-0": ["0"], "two-worker-1": ["1"], "two-worker-2": ["3"]}


def test_gpus_that_another_user_holds_are_counted_as_held_elsewhere(jobs: Jobs):
    elsewhere = lock_gpus(jobs.machine.gpus[:2], 2)
    jobs.begin("one", worker=(1, {GPU: 1}))
    assert jobs.reserve("one") == ""
    jobs.begin("two", worker=(2, {GPU: 1}))
    message = jobs.reserve("two")
    assert "other jobs hold one (1), jobs of other users or state directories (2); the job starts when" in message
    assert jobs.gpus("two") == {}
    for lock in elsewhere:
        lock.release()
    assert jobs.reserve("two") == ""


def test_a_reservation_counts_while_its_job_has_a_runner_and_its_file_is_whole(jobs: Jobs):
    for name in ("one", "two"):
        jobs.begin(name, worker=(1, {"cpu": "400m"}))
        assert jobs.reserve(name) == ""
    assert {name: one["asked"] for name, one in held_by_jobs(jobs.store).items()} == {
        "one": {"cpu": 0.4},
        "two": {"cpu": 0.4},
    }
    assert list(held_by_jobs(jobs.store, other_than=jobs.held["one"][0])) == ["two"]
    jobs.begin("three", worker=(1, {"cpu": "600m"}))
    assert jobs.reserve("three") != ""
    (jobs.held["one"][0].path / FILE).write_text("{")
    assert list(held_by_jobs(jobs.store)) == ["two"]
    assert jobs.reserve("three") == ""
    jobs.held["two"][1].release()
    assert list(held_by_jobs(jobs.store)) == ["three"]


def test_what_a_job_gave_back_is_free(jobs: Jobs):
    folder = jobs.begin("one", worker=(1, {"cpu": 1}))
    assert jobs.reserve("one") == ""
    for _ in range(2):
        jobs.reservations.release(folder)
    jobs.begin("two", worker=(1, {"cpu": 1}))
    assert jobs.reserve("two") == ""


@pytest.mark.parametrize("stored", ["{", "{}", '{"gpus": null}'])
def test_a_reservation_without_gpus_names_none(jobs: Jobs, stored: str):
    folder = jobs.begin("one", worker=(1, {GPU: 1}))
    assert jobs.reserve("one") == ""
    assert json.loads((folder.path / FILE).read_text())["asked"] == {GPU: 1}
    (folder.path / FILE).write_text(stored)
    assert gpus_of_pods(folder) == {}
