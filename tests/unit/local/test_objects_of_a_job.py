"""The objects of one job on this machine: what is found, published, removed and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Role
from paddlejob.local.job import LocalJob
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import LocalPod, new_pod
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.plan import PodPhase
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import NOON, document


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def local(tmp_path: Path, changes: Changes) -> Any:
    folder, lock = JobStore(tmp_path).begin(document(), RunOptions(), NOON)
    yield LocalJob(folder, lock, changes)
    lock.release()


def pod(folder: JobFolder, index: int, attempt: int = 1) -> LocalPod:
    job = folder.job()
    assert job is not None
    manifest = pod_manifest(job, Role.WORKER, index, attempt, "build")
    return new_pod(f"uid-{index}-{attempt}", manifest, folder.path / "pods", NOON)


def test_a_name_is_taken_until_its_pod_is_removed(local: LocalJob):
    first, second = pod(local.folder, 0), pod(local.folder, 0, attempt=2)
    local.add(first)
    local.add(second)
    assert local.pods["mnist-worker-0"] is first
    local.remove(first)
    assert first.removed
    local.add(second)
    local.remove(first)
    assert local.pods == {"mnist-worker-0": second}


def test_only_a_pod_that_waits_for_a_node_is_unbound(local: LocalJob):
    waiting, bound, ended = (pod(local.folder, index) for index in range(3))
    for one in (waiting, bound, ended):
        local.add(one)
    local.update(bound, node="laptop")
    local.update(ended, phase=PodPhase.FAILED)
    assert local.unbound_pods() == [waiting]


def test_peers_are_the_pods_of_the_same_attempt_of_a_job_with_services(local: LocalJob):
    first, other, later = pod(local.folder, 0), pod(local.folder, 1), pod(local.folder, 2, attempt=2)
    for one in (first, other, later):
        local.add(one)
    assert local.peers(first) == []
    local.services.add("mnist-worker-0")
    assert local.peers(first) == [first.seen, other.seen]


def test_an_environment_is_published_once_and_taken_back(local: LocalJob):
    mine = pod(local.folder, 0)
    assert not local.is_published(mine)
    local.publish(1, "env-1", {"A": "1"})
    local.publish(1, "env-x", {"A": "2"})
    assert local.is_published(mine)
    assert local.config_maps == {"env-1": {"A": "1"}}
    local.unpublish(1)
    local.unpublish(7)
    assert not local.is_published(mine)
    assert local.config_maps == {}


def test_each_change_of_a_pod_is_reported_and_a_new_pod_is_not(local: LocalJob, changes: Changes):
    mine = pod(local.folder, 0)
    local.add(mine)
    assert changes.count == 0
    local.update(mine, phase=PodPhase.RUNNING)
    assert (changes.count, mine.seen.phase) == (1, PodPhase.RUNNING)
    local.remove(mine)
    assert changes.count == 2


def test_records_stay_when_pods_are_removed_and_an_older_attempt_never_replaces_a_newer(local: LocalJob):
    old, new = pod(local.folder, 0), pod(local.folder, 0, attempt=2)
    local.add(old)
    local.remove(old)
    local.add(new)
    local.update(old, phase=PodPhase.FAILED)
    local.write_records()
    (record,) = local.folder.pods()
    assert (record.uid, record.attempt, record.removed) == ("uid-0-2", 2, False)
    assert record.log.endswith("mnist-worker-0.log")


def test_records_are_written_only_when_they_changed(local: LocalJob, monkeypatch: pytest.MonkeyPatch):
    written = []
    monkeypatch.setattr(JobFolder, "write_pods", lambda folder, records: written.append(len(records)))
    local.write_records()
    assert written == []
    mine = pod(local.folder, 0)
    local.add(mine)
    local.write_records()
    local.write_records()
    assert written == [1]
    local.update(mine, phase=PodPhase.RUNNING)
    local.write_records()
    assert written == [1, 1]


def test_records_that_could_not_be_written_are_written_later(local: LocalJob, monkeypatch: pytest.MonkeyPatch):
    local.add(pod(local.folder, 0))

    def full(folder: JobFolder, records: list[Any]) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(JobFolder, "write_pods", full)
        local.write_records()
    local.write_records()
    assert len(local.folder.pods()) == 1


def test_the_logs_of_the_last_ten_attempts_are_kept(local: LocalJob):
    for attempt in range(1, 13):
        local.publish(attempt, f"env-{attempt}", {})
        log = local.folder.log(attempt, "mnist-worker-0")
        log.parent.mkdir(parents=True)
        log.write_text(f"attempt {attempt}\n")
    kept = [attempt for attempt in range(1, 13) if local.folder.log(attempt, "mnist-worker-0").exists()]
    assert kept == list(range(3, 13))
