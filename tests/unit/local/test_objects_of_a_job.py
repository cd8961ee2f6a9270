"""The objects of one job on this machine: what is found, published, removed and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Role
from paddlejob.local.objects import JobObjects
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import LocalPod, new_pod
from paddlejob.local.state.store import JobFolder, Store
from paddlejob.plan import PodPhase
from paddlejob.plan.objects.pod import pod_manifest
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
def objects(tmp_path: Path, changes: Changes) -> Any:
    folder, lock = Store(tmp_path).begin(document(), RunOptions(), NOON)
    yield JobObjects(folder, changes)
    lock.release()


def pod(folder: JobFolder, index: int, attempt: int = 1) -> LocalPod:
    job = folder.job()
    assert job is not None
    manifest = pod_manifest(job, Role.WORKER, index, attempt, "build")
    return new_pod(folder.key, f"uid-{index}-{attempt}", manifest, folder.path / "pods", NOON)


def test_a_pod_is_found_by_its_uid(objects: JobObjects):
    objects.add(pod(objects.folder, 0))
    objects.add(pod(objects.folder, 1))
    found = objects.find("uid-1-1")
    assert found is not None and found.seen.name == "mnist-worker-1"
    assert objects.find("uid-2-1") is None


def test_a_name_is_taken_until_its_pod_is_removed(objects: JobObjects):
    first, second = pod(objects.folder, 0), pod(objects.folder, 0, attempt=2)
    objects.add(first)
    objects.add(second)
    assert objects.pods["mnist-worker-0"] is first
    objects.remove(first)
    assert first.removed
    objects.add(second)
    objects.remove(first)
    assert objects.pods == {"mnist-worker-0": second}


def test_only_a_pod_that_waits_for_an_address_is_unbound(objects: JobObjects):
    waiting, bound, ended = (pod(objects.folder, index) for index in range(3))
    for one in (waiting, bound, ended):
        objects.add(one)
    objects.update(bound, address="127.64.0.1")
    objects.update(ended, phase=PodPhase.FAILED)
    assert objects.unbound_pods() == [waiting]


def test_peers_are_the_pods_of_the_same_attempt_of_a_job_with_services(objects: JobObjects):
    first, other, later = pod(objects.folder, 0), pod(objects.folder, 1), pod(objects.folder, 2, attempt=2)
    for one in (first, other, later):
        objects.add(one)
    assert objects.peers(first) == []
    objects.services.add("mnist-worker-0")
    assert objects.peers(first) == [first.seen, other.seen]


def test_an_environment_is_published_once_and_taken_back(objects: JobObjects):
    mine = pod(objects.folder, 0)
    assert not objects.is_published(mine)
    objects.publish(1, "env-1", {"A": "1"})
    objects.publish(1, "env-x", {"A": "2"})
    assert objects.is_published(mine)
    assert objects.config_maps == {"env-1": {"A": "1"}}
    objects.unpublish(1)
    objects.unpublish(7)
    assert not objects.is_published(mine)
    assert objects.config_maps == {}


def test_each_change_of_a_pod_is_reported_and_a_new_pod_is_not(objects: JobObjects, changes: Changes):
    mine = pod(objects.folder, 0)
    objects.add(mine)
    assert changes.count == 0
    objects.update(mine, phase=PodPhase.RUNNING)
    assert (changes.count, mine.seen.phase) == (1, PodPhase.RUNNING)
    objects.remove(mine)
    assert changes.count == 2


def test_records_stay_when_pods_are_removed_and_an_older_attempt_never_replaces_a_newer(objects: JobObjects):
    old, new = pod(objects.folder, 0), pod(objects.folder, 0, attempt=2)
    objects.add(old)
    objects.remove(old)
    objects.add(new)
    objects.update(old, phase=PodPhase.FAILED)
    objects.write_records()
    (record,) = objects.folder.pods()
    assert (record.uid, record.attempt, record.removed) == ("uid-0-2", 2, False)
    assert record.log.endswith("mnist-worker-0.log")


def test_records_are_written_only_when_they_changed(objects: JobObjects, monkeypatch: pytest.MonkeyPatch):
    written = []
    monkeypatch.setattr(JobFolder, "write_pods", lambda folder, records: written.append(len(records)))
    objects.write_records()
    assert written == []
    mine = pod(objects.folder, 0)
    objects.add(mine)
    objects.write_records()
    objects.write_records()
    assert written == [1]
    objects.update(mine, phase=PodPhase.RUNNING)
    objects.write_records()
    assert written == [1, 1]


def test_records_that_could_not_be_written_are_written_later(objects: JobObjects, monkeypatch: pytest.MonkeyPatch):
    objects.add(pod(objects.folder, 0))

    def full(folder: JobFolder, records: list[Any]) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(JobFolder, "write_pods", full)
        objects.write_records()
    objects.write_records()
    assert len(objects.folder.pods()) == 1


def test_the_logs_of_the_last_ten_attempts_are_kept(objects: JobObjects):
    for attempt in range(1, 13):
        objects.publish(attempt, f"env-{attempt}", {})
        log = objects.folder.log(attempt, "mnist-worker-0")
        log.parent.mkdir(parents=True)
        log.write_text(f"attempt {attempt}\n")
    kept = [attempt for attempt in range(1, 13) if objects.folder.log(attempt, "mnist-worker-0").exists()]
    assert kept == list(range(3, 13))
