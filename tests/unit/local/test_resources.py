"""Quantities, what jobs ask for, and how the machine is shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob
from paddlejob.cli.doctor.machine import check_machine
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.files import LifeLock
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine, amount, of_job, this_machine
from paddlejob.local.options import RunOptions
from paddlejob.local.store import JobFolder, Store
from tests.support.builders import document, template

MACHINE = Machine("laptop", cpus=4, memory=8 * 1024**3, gpus=("0", "1"))


@pytest.mark.parametrize(
    ("quantity", "number"),
    [(2, 2.0), ("500m", 0.5), ("1.5Gi", 1.5 * 1024**3), ("1e3", 1000.0), ("2G", 2e9), ("1Ki", 1024.0)],
)
def test_quantities_are_read(quantity: str | int, number: float):
    assert amount(quantity) == number


@pytest.mark.parametrize("quantity", ["", "much", "1GB", "Gi"])
def test_what_is_no_quantity_is_refused(quantity: str):
    with pytest.raises(BadInput, match="is no quantity"):
        amount(quantity)


def asking(name: str, workers: int = 2, **resources: Any) -> dict[str, Any]:
    return document(name, workers=workers, worker_={"template": template(resources={"limits": resources})})


def test_a_limit_without_a_request_is_a_request():
    job = PaddleJob.model_validate(asking("mnist", workers=3, cpu=1, memory="1Gi"))
    assert of_job(job.spec) == {"cpu": 3, "memory": 3 * 1024**3}


class Room:
    """Jobs that ask for their share, each as if a process of its own ran it."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.claims = Reservations(self.store, MACHINE)
        self.held: dict[str, tuple[JobFolder, LifeLock]] = {}

    def ask(self, wanted: dict[str, Any], overcommit: bool = False) -> str:
        name = wanted["metadata"]["name"]
        if name not in self.held:
            self.held[name] = self.store.begin(wanted, RunOptions(), 1_800_000_000.0)
        folder = self.held[name][0]
        job = folder.job()
        assert job is not None
        return self.claims.take(job, folder, overcommit)


def test_a_job_that_fits_beside_others_is_let_in_and_others_wait_for_those_who_hold(tmp_path: Path):
    room = Room(tmp_path)
    assert room.ask(asking("one", cpu=1)) == ""
    assert room.ask(asking("two", cpu=1)) == ""
    assert "one (2), two (2)" in room.ask(asking("three", cpu=1))


def test_a_share_is_free_again_when_its_holder_dies(tmp_path: Path):
    room = Room(tmp_path)
    room.ask(asking("one", cpu=2))
    assert room.ask(asking("two", cpu=1))
    room.held["one"][1].release()
    assert room.ask(asking("two", cpu=1)) == ""


def test_each_pod_has_gpus_of_its_own(tmp_path: Path):
    room = Room(tmp_path)
    assert room.ask(asking("one", workers=1, **{"nvidia.com/gpu": 1})) == ""
    assert room.ask(asking("two", workers=1, **{"nvidia.com/gpu": 1})) == ""
    given = [room.claims.gpus(room.held[name][0], f"{name}-worker-0") for name in ("one", "two")]
    assert given == [["0"], ["1"]]
    assert "nvidia.com/gpu" in room.ask(asking("three", workers=1, **{"nvidia.com/gpu": 1}))


def test_who_overcommits_does_not_wait(tmp_path: Path):
    room = Room(tmp_path)
    room.ask(asking("one", cpu=2))
    assert room.ask(asking("two", cpu=2), overcommit=True) == ""


def test_what_is_not_linux_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(NotPossible, match="needs Linux, and this is Darwin"):
        this_machine()
    assert [check.what for check in check_machine()] == ["system"]
