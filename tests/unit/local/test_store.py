"""The store: names in use, jobs that expire, changes that are checked, files on a full disk."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Status
from paddlejob.errors import BadInput, InvalidJob
from paddlejob.local.options import RunOptions
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.files import read_json, write_json
from paddlejob.local.state.store import Store
from tests.support.builders import NOON, document


def begun(store: Store, name: str = "mnist", **options: Any) -> Any:
    return store.begin(document(name, **options), RunOptions(), NOON)


def test_a_job_with_a_runner_keeps_its_name(tmp_path: Path):
    store = Store(tmp_path)
    _, lock = begun(store)
    with pytest.raises(BadInput, match="already running"):
        begun(store)
    lock.release()
    folder, _ = begun(store)
    assert folder.has_runner


def test_a_new_run_begins_with_no_trace_of_the_old(tmp_path: Path):
    store = Store(tmp_path)
    folder, lock = begun(store)
    folder.write_status(Status(phase="Failed", restarts=3))
    folder.add_event({"reason": "x"})
    lock.release()
    again, _ = begun(store)
    assert again.job().status == Status()
    assert again.events() == []


def test_finished_jobs_are_removed_after_their_time_to_live(tmp_path: Path):
    store = Store(tmp_path)
    folder, lock = begun(store, ttlSecondsAfterFinished=60)
    folder.write_status(Status(phase="Completed", completionTime="2027-01-15T08:00:00Z"))
    store.prune(NOON + 59)
    store.prune(NOON + 61)
    assert folder.path.exists(), "it still has a runner"
    lock.release()
    store.prune(NOON + 59)
    assert folder.path.exists()
    store.prune(NOON + 61)
    assert not folder.path.exists()


def test_a_change_is_checked_and_counted(tmp_path: Path):
    folder, _ = begun(Store(tmp_path))
    change_spec(folder, suspend=True)
    assert folder.document()["metadata"]["generation"] == 2
    change_spec(folder, worker={"replicas": 5})
    assert folder.document()["spec"]["worker"]["replicas"] == 5
    assert "template" in folder.document()["spec"]["worker"]
    change_spec(folder, suspend=False)
    with pytest.raises(InvalidJob, match="elastic"):
        change_spec(folder, worker={"replicas": 6})
    with pytest.raises(InvalidJob, match="less than 1"):
        change_spec(folder, worker={"replicas": 0})
    assert folder.document()["metadata"]["generation"] == 4


def test_a_change_without_effect_is_not_counted(tmp_path: Path):
    folder, _ = begun(Store(tmp_path))
    change_spec(folder, worker={"replicas": 2})
    assert folder.document()["metadata"]["generation"] == 1


def test_deletion_is_marked_once(tmp_path: Path):
    folder, _ = begun(Store(tmp_path))
    mark_for_deletion(folder, NOON)
    mark_for_deletion(folder, NOON + 5)
    assert folder.job().metadata.deletionTimestamp == "2027-01-15T08:00:00Z"


def test_a_status_is_written_over_the_old_one_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "status.json"
    write_json(file, {"phase": "Running", "message": "x" * 500}, padded=True)
    monkeypatch.setattr(Path, "write_bytes", _disk_full)
    write_json(file, {"phase": "Failed"}, padded=True)
    assert read_json(file) == {"phase": "Failed"}
    with pytest.raises(OSError, match="No space"):
        write_json(tmp_path / "new.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def _disk_full(self: Path, content: bytes) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("bad", ["..", ".", "", "../../x", "/etc", "a/b", ".hidden", "a\0b"])
def test_no_key_leads_out_of_the_store(bad: str, tmp_path: Path):
    store = Store(tmp_path / "state")
    with pytest.raises(BadInput, match="not a valid name"):
        store.folder(("default", bad))
    with pytest.raises(BadInput, match="not a valid namespace"):
        store.folder((bad, "mnist"))
    with pytest.raises(BadInput, match="not a valid name"):
        store.claim("default", bad)
    with pytest.raises(BadInput, match="not a valid namespace"):
        store.claim(bad, "data")
    with pytest.raises(BadInput, match="not a valid name"):
        store.folder(("default", "mnist")).log(1, "mnist-worker-0", bad or "..")


def test_a_job_of_an_older_version_whose_name_has_a_dot_is_still_found(tmp_path: Path):
    store = Store(tmp_path)
    begun(store, "old.name")
    assert [folder.key for folder in store.folders()] == [("default", "old.name")]
