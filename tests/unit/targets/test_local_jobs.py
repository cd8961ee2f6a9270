"""Jobs on this machine: listing, showing, deleting and changing them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Status
from paddlejob.client import runs as runs_module
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local import runner
from paddlejob.local.engine_error import ENGINE_ERROR
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobStore
from paddlejob.targets.local import local_target as local_module
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


def test_jobs_of_one_namespace_or_of_all_are_listed(store: JobStore, target: SyncTarget):
    stored(store)
    stored(store, "other", "team")
    assert [view.job.name for view in target.jobs(None)] == ["mnist", "other"]
    (one,) = target.jobs("team")
    assert (one.job.name, one.flags) == ("other", " -n team")
    with pytest.raises(BadInput, match="existing jobs: other"):
        target.job("team", "mnist")
    with pytest.raises(BadInput, match=r"none not found in namespace x; start one with `pdj run FILE -n x`"):
        target.job("x", "none")
    assert (target.start_command(), target.target.address) == ("pdj run FILE", "this machine")


def test_a_job_whose_engine_was_killed_has_no_running_replica(store: JobStore, target: SyncTarget):
    counted = {"worker": {"replicas": 2, "running": 2, "ready": "2/2"}}
    folder = stored(store, status=counted, namespace="team")
    states = ("Pending", "Waiting", "Running", "Succeeded")
    folder.write_pods([PodRecord(f"p{n}", f"u{n}", "worker", n, 1, state, pid=n + 7) for n, state in enumerate(states)])
    view = target.job("team", "mnist")
    assert (view.phase, view.job.status.worker and view.job.status.worker.ready) == ("Interrupted", "0/2")
    assert view.job.status.worker and view.job.status.worker.running == 0
    assert [pod.state for pod in view.pods] == ["Stopped", "Stopped", "Stopped", "Succeeded"]
    assert [pod.pid for pod in view.pods] == [0, 0, 0, 0]
    assert "run `pdj resume mnist -n team` to continue or `pdj delete mnist -n team` to remove" in view.note
    assert view.document["status"]["pods"][0] == {
        "name": "p0", "role": "worker", "index": 0, "state": "Stopped", "attempt": 1
    }  # fmt: skip
    held = folder.runner_lock()
    assert held.acquire()
    running = target.job("team", "mnist")
    assert (running.phase, running.note, running.job.status.worker and running.job.status.worker.ready) == (
        "Running", "", "2/2"
    )  # fmt: skip
    assert [pod.pid for pod in running.pods] == [7, 8, 9, 0]
    held.release()


def test_an_engine_that_ended_with_an_error_says_which(store: JobStore, target: SyncTarget):
    stored(store, status={"reason": ENGINE_ERROR, "message": "KeyError: 'x'"})
    assert target.job("default", "mnist").note == "KeyError: 'x'; continue with `pdj resume mnist`"


def test_a_job_that_ended_keeps_its_counts_and_has_no_note(store: JobStore, target: SyncTarget):
    counted = {"worker": {"replicas": 2, "running": 1, "ready": "1/2"}}
    stored(store, status={"phase": "Completed", **ENDED, **counted})
    done = target.job("default", "mnist")
    assert (done.phase, done.note, done.damaged) == ("Completed", "", False)
    assert done.job.status.worker and done.job.status.worker.ready == "1/2"
    stored(store, "failed", status={"phase": "Failed", **ENDED, **counted})
    failed = target.job("default", "failed")
    assert failed.job.status.worker and failed.job.status.worker.ready == "0/2"


def test_a_job_that_is_marked_for_deletion_is_being_deleted(store: JobStore, target: SyncTarget):
    folder = stored(store)
    held = folder.runner_lock()
    assert held.acquire()
    assert target.delete("default", "mnist", wait=False) == "mnist is being deleted"
    assert target.job("default", "mnist").phase == "Deleting"
    held.release()


def test_a_delete_waits_for_the_engine_and_says_when_that_takes_too_long(
    store: JobStore, target: SyncTarget, monkeypatch: pytest.MonkeyPatch
):
    folder = stored(store, namespace="team")
    held = folder.runner_lock()
    assert held.acquire()
    monkeypatch.setattr(local_module, "DELETE_TIMEOUT", 0.0)
    with pytest.raises(BadInput, match="job mnist is still stopping after 0 s; check `pdj get mnist -n team`"):
        target.delete("team", "mnist", wait=True)
    monkeypatch.setattr(local_module, "DELETE_TIMEOUT", 60.0)
    later = threading.Timer(0.1, held.release)
    later.start()
    assert target.delete("team", "mnist", wait=True) == "mnist deleted"
    later.join()
    assert not folder.path.exists()
    with pytest.raises(BadInput, match="mnist not found"):
        target.delete("team", "mnist", wait=True)


def test_a_resume_waits_for_an_engine_that_is_ending_and_starts_another(
    store: JobStore, target: SyncTarget, monkeypatch: pytest.MonkeyPatch
):
    """It holds the lock until its processes are gone, and looks at no change any more."""
    started: list[Any] = []
    monkeypatch.setattr(runner, "spawn_detached", lambda store, held: started.extend(held))
    folder = stored(store, status={"observedGeneration": 1}, suspend=True)
    held = folder.runner_lock()
    assert held.acquire()
    monkeypatch.setattr(local_module, "DELETE_TIMEOUT", 0.0)
    with pytest.raises(NotPossible, match="job mnist is still stopping after 0 s; try again later"):
        target.change("default", "mnist", suspend=False)
    monkeypatch.setattr(local_module, "DELETE_TIMEOUT", 60.0)
    later = threading.Timer(0.1, held.release)
    later.start()
    target.change("default", "mnist", suspend=False)
    later.join()
    ((engine_of, lock),) = started
    assert engine_of.key == folder.key
    folder.write_status(Status.model_validate({"phase": "Running", "observedGeneration": 2}))
    target.change("default", "mnist", suspend=False)
    assert len(started) == 1
    lock.release()


def test_a_deleted_job_leaves_no_previous_runs(store: JobStore, target: SyncTarget):
    stored(store)
    stored(store)
    assert len(runs_module.runs(target.target, None)) == 2
    target.delete("default", "mnist", wait=True)
    assert runs_module.runs(target.target, None) == []


def test_a_change_of_a_job_that_ended_or_is_damaged_is_refused(store: JobStore, target: SyncTarget):
    stored(store, status={"phase": "Completed", **ENDED})
    with pytest.raises(BadInput, match=r"job mnist has ended \(Completed\) and cannot be changed; run it again"):
        target.change("default", "mnist", suspend=True)
    damaged = stored(store, "torn", elastic=1)
    (damaged.path / "job.json").write_text("{")
    assert target.job("default", "torn").phase == "Damaged"
    with pytest.raises(
        NotPossible, match=r"remove the job and its logs with `pdj delete torn`, or start it again with `pdj run`"
    ):
        target.change("default", "torn", worker={"replicas": 3})
    optionless = stored(store, "half", elastic=1)
    held = optionless.runner_lock()
    assert held.acquire()
    (optionless.path / "run.json").write_text("{")
    seen = target.job("default", "half")
    assert (seen.phase, seen.damaged) == ("Running", True)
    assert "so the job cannot be resumed once it stops" in seen.note
    target.change("default", "half", worker={"replicas": 3})
    assert (optionless.document() or {})["spec"]["worker"]["replicas"] == 3
    with pytest.raises(NotPossible, match="cannot be resumed"):
        target.change("default", "half", suspend=True)
    held.release()


def test_a_damaged_job_is_shown_with_its_name_and_can_be_deleted(store: JobStore, target: SyncTarget):
    folder = stored(store, namespace="team")
    folder.write_pods([PodRecord("p", "u", "worker", 0, 1, "Running", pid=7)])
    (folder.path / "job.json").write_text("{")
    view = target.job("team", "mnist")
    assert (view.job.namespace, view.job.name, view.flags, view.damaged) == ("team", "mnist", " -n team", True)
    assert (view.document["kind"], view.document["metadata"]["name"]) == ("PaddleJob", "mnist")
    assert view.document["status"] == {"message": view.note}
    assert [pod.state for pod in view.pods] == ["Stopped"]
    assert target.delete("team", "mnist", wait=True) == "mnist deleted"
