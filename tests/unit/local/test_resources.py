"""Quantities, what jobs request, and how they share the machine."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob
from paddlejob.cli.doctor.machine import check_machine
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine, of_job, parse_quantity, this_machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobFolder, Store
from paddlejob.locks import ProcessLock
from tests.support.builders import document, template
from tests.support.fake_gpus import fake_gpus

MACHINE = Machine("laptop", cpus=4, memory=8 * 1024**3, gpus=fake_gpus(2))


@pytest.mark.parametrize(
    ("quantity", "number"),
    [(2, 2.0), ("500m", 0.5), ("1.5Gi", 1.5 * 1024**3), ("1e3", 1000.0), ("2G", 2e9), ("1Ki", 1024.0)],
)
def test_quantities_are_read(quantity: str | int, number: float):
    assert parse_quantity(quantity) == number


@pytest.mark.parametrize("quantity", ["", "much", "1GB", "Gi"])
def test_text_that_is_not_a_quantity_is_rejected(quantity: str):
    with pytest.raises(BadInput, match="is not a quantity"):
        parse_quantity(quantity)


def asking(name: str, workers: int = 2, **resources: Any) -> dict[str, Any]:
    return document(name, workers=workers, worker_={"template": template(resources={"limits": resources})})


def test_a_limit_without_a_request_is_a_request():
    job = PaddleJob.model_validate(asking("mnist", workers=3, cpu=1, memory="1Gi"))
    assert of_job(job.spec) == {"cpu": 3, "memory": 3 * 1024**3}


class Competition:
    """Jobs that compete for one machine, each as if it had a runner of its own."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.reservations = Reservations(self.store, MACHINE)
        self.held: dict[str, tuple[JobFolder, ProcessLock]] = {}
        self.allocations: dict[str, Allocation] = defaultdict(Allocation)

    def ask(self, wanted: dict[str, Any], overcommit: bool = False, namespace: str = "default") -> str:
        wanted["metadata"]["namespace"] = namespace
        name = wanted["metadata"]["name"] if namespace == "default" else f"{namespace}/{wanted['metadata']['name']}"
        if name not in self.held:
            self.held[name] = self.store.begin(wanted, RunOptions(), 1_800_000_000.0)
        folder = self.held[name][0]
        job = folder.job()
        assert job is not None
        return self.reservations.reserve(job, folder, self.allocations[name], overcommit)

    def close(self) -> None:
        for allocation in self.allocations.values():
            allocation.clear()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Competition]:
    made = Competition(tmp_path)
    yield made
    made.close()


def test_a_job_that_fits_beside_others_gets_what_it_requests_and_the_next_learns_who_holds_the_rest(
    jobs: Competition,
):
    assert jobs.ask(asking("one", cpu=1)) == ""
    assert jobs.ask(asking("two", cpu=1)) == ""
    assert "one (2), two (2)" in jobs.ask(asking("three", cpu=1))


def test_a_reservation_is_free_again_when_the_runner_of_its_job_dies(jobs: Competition):
    jobs.ask(asking("one", cpu=2))
    assert jobs.ask(asking("two", cpu=1))
    jobs.held["one"][1].release()
    assert jobs.ask(asking("two", cpu=1)) == ""


def test_jobs_of_one_name_in_two_namespaces_both_count(jobs: Competition):
    assert jobs.ask(asking("train", cpu=1), namespace="team-a") == ""
    assert jobs.ask(asking("train", cpu=1), namespace="team-b") == ""
    assert "team-a/train (2), team-b/train (2)" in jobs.ask(asking("third", cpu=1))


def test_each_pod_has_gpus_of_its_own(jobs: Competition):
    assert jobs.ask(asking("one", workers=1, **{"nvidia.com/gpu": 1})) == ""
    assert jobs.ask(asking("two", workers=1, **{"nvidia.com/gpu": 1})) == ""
    given = [jobs.allocations[name].gpus(f"{name}-worker-0") for name in ("one", "two")]
    assert given == [[gpu] for gpu in MACHINE.gpus]
    waiting = jobs.ask(asking("three", workers=1, **{"nvidia.com/gpu": 1}))
    assert "other jobs hold one (1), two (1); the job starts when they have released enough" in waiting


def test_gpus_of_an_engine_of_version_0_1_that_still_runs_are_left_to_it(jobs: Competition):
    jobs.ask(asking("old", workers=1, **{"nvidia.com/gpu": 1}))
    jobs.allocations["old"].clear()
    recorded = {"asked": {"nvidia.com/gpu": 1}, "gpus": {"old-worker-0": ["0"]}}
    (jobs.held["old"][0].path / "claim.json").write_text(json.dumps(recorded))
    assert jobs.ask(asking("new", workers=1, **{"nvidia.com/gpu": 1})) == ""
    assert jobs.allocations["new"].gpus("new-worker-0") == [MACHINE.gpus[1]]


def test_a_job_that_overcommits_does_not_wait(jobs: Competition):
    jobs.ask(asking("one", cpu=2))
    assert jobs.ask(asking("two", cpu=2), overcommit=True) == ""


def test_other_systems_than_linux_are_rejected_before_anything_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(NotPossible, match="needs Linux, and this is Darwin"):
        this_machine()
    assert [check.what for check in check_machine()] == ["system"]
