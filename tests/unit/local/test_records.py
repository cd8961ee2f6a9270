"""Records of pods in pods.json, also those that version 0.1 wrote."""

from __future__ import annotations

import json
from pathlib import Path

from paddlejob.client.targets.local import LocalTarget
from paddlejob.local.options import RunOptions
from paddlejob.local.state.files import read_json
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import Store
from tests.support.builders import NOON, document

OLD = {
    "name": "mnist-worker-0",
    "uid": "8f2c",
    "removed": False,
    "role": "worker",
    "index": 0,
    "attempt": 2,
    "state": "Failed",
    "address": "127.80.3.1",
    "exitCode": 137,
    "trouble": "OOMKilled",
    "words": "Killed",
    "pid": 0,
    "started": "2027-01-15T08:00:00Z",
    "ended": None,
    "log": "/state/logs/attempt-2/mnist-worker-0.log",
}


def test_a_record_is_read_as_it_was_written():
    record = PodRecord(
        "mnist-worker-0", "8f2c", "worker", 0, 1, "Running", exit_code=3, reason="OOMKilled", message="x"
    )
    assert PodRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_record_of_version_01_is_read(tmp_path: Path):
    folder, lock = Store(tmp_path).begin(document("mnist"), RunOptions(), NOON)
    (folder.path / "pods.json").write_text(json.dumps([OLD]))
    (record,) = folder.pods()
    assert (record.reason, record.message, record.exit_code) == ("OOMKilled", "Killed", 137)
    assert (record.started, record.ended) == ("2027-01-15T08:00:00Z", "")
    view = LocalTarget(Store(tmp_path)).find(folder.key)
    assert view is not None
    assert view.pods[0].state == "Failed"
    lock.release()


def test_a_new_record_has_the_keys_of_the_old_one_but_for_the_two_that_were_renamed(tmp_path: Path):
    folder, lock = Store(tmp_path).begin(document("mnist"), RunOptions(), NOON)
    folder.write_pods([PodRecord.from_json(OLD)])
    (stored,) = read_json(folder.path / "pods.json")
    assert stored.keys() ^ OLD.keys() == {"trouble", "words", "reason", "message"}
    lock.release()
