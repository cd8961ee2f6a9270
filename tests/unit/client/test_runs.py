"""Runs of jobs on this machine: listed, chosen by their number, and removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.client import runs as runs_module
from paddlejob.errors import BadInput
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.logs.selection import LogSelection
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget
from tests.support.stored_jobs import stored

ENDED = {"completionTime": "2027-01-15T08:00:00Z"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobStore:
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    return JobStore()


@pytest.fixture
def target(store: JobStore) -> SyncTarget:
    return SyncTarget(LocalTarget(store))


def with_log(folder: JobFolder, text: str, attempt: int = 1, index: int = 0) -> Path:
    log = folder.log(attempt, f"{folder.key[1]}-worker-{index}")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    return log


def test_a_previous_run_is_chosen_by_its_number(store: JobStore, target: SyncTarget):
    for number in (1, 2):
        with_log(stored(store, status={"phase": "Completed", **ENDED}), f"run {number}\n")

    def read(run: int) -> bytes:
        _, batches = target.logs("default", "mnist", LogSelection(run=run, index=0))
        return b"".join(line.content for batch in batches for line in batch)

    assert (read(0), read(1), read(2)) == (b"run 2", b"run 1", b"run 2")
    with pytest.raises(BadInput, match=r"run 3 of job mnist is not kept; kept previous runs: 1 \(`pdj list --history`"):
        read(3)
    runs_module.clean(target.target, None, [], 0)
    with pytest.raises(BadInput, match="kept previous runs: none"):
        read(1)


def test_runs_are_listed_by_name_with_their_numbers_and_how_they_ended(store: JobStore, target: SyncTarget):
    stored(store, status={"phase": "Failed", **ENDED})
    stored(store)
    stored(store, status={"phase": "Completed", **ENDED})
    stored(store, "other", "team", status={"phase": "Completed", **ENDED})
    found = runs_module.runs(target.target, None)
    assert [(run.key[1], run.number, run.phase) for run in found] == [
        ("mnist", 1, "Failed"), ("mnist", 2, "Interrupted"), ("mnist", 3, "Completed"), ("other", 1, "Completed")
    ]  # fmt: skip
    assert all(run.size > 0 and run.job for run in found)
    assert [run.key[1] for run in runs_module.runs(target.target, "team")] == ["other"]
    (store.root / "history/default/mnist/1/job.json").write_text("{")
    torn = runs_module.runs(target.target, None)[0]
    assert (torn.phase, torn.job, torn.number) == ("Damaged", None, 1)


def test_previous_runs_are_removed_but_for_the_last(store: JobStore, target: SyncTarget):
    for name, namespace in (("mnist", "default"), ("other", "team")):
        for _ in range(3):
            stored(store, name, namespace)
    with pytest.raises(BadInput, match="job absent has no previous runs; list them with `pdj list --history`"):
        runs_module.clean(target.target, None, ["absent"], 0)
    with pytest.raises(BadInput, match="job other has no previous runs"):
        runs_module.clean(target.target, "default", ["other"], 0)
    assert [run.number for run in runs_module.clean(target.target, None, ["mnist"], 1)] == [1]
    assert [run.number for run in runs_module.clean(target.target, "team", [], 0)] == [1, 2]
    assert [run.key[1] for run in runs_module.runs(target.target, None)] == ["mnist", "mnist", "other"]
