"""Records of pods in pods.json: what other commands know about a pod."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobStore
from tests.support.builders import NOON, document

STORED = {
    "name": "mnist-worker-0",
    "uid": "8f2c",
    "removed": False,
    "role": "worker",
    "index": 0,
    "attempt": 2,
    "state": "Failed",
    "address": "127.80.3.1",
    "exitCode": 137,
    "reason": "OOMKilled",
    "message": "Killed",
    "pid": 0,
    "started": "2027-01-15T08:00:00Z",
    "ended": None,
    "log": "/state/logs/attempt-2/mnist-worker-0.log",
}


@pytest.mark.parametrize("stored", ["{}", "[1, null, {}]", '"text"', "null"])
def test_records_of_pods_that_are_damaged_are_left_out(tmp_path: Path, stored: str):
    folder, lock = JobStore(tmp_path).begin(document("mnist"), RunOptions(), NOON)
    (folder.path / "pods.json").write_text(stored)
    assert folder.pods() == []
    lock.release()


def test_a_record_keeps_its_form_on_disk(tmp_path: Path):
    folder, lock = JobStore(tmp_path).begin(document("mnist"), RunOptions(), NOON)
    (folder.path / "pods.json").write_text(json.dumps([STORED, {**STORED, "note": "a sidecar failed"}]))
    first, second = folder.pods()
    assert (first.reason, first.exit_code, first.ended, first.note) == ("OOMKilled", 137, "", "")
    assert second.note == "a sidecar failed"
    assert PodRecord.from_json(STORED).to_json() == STORED
    lock.release()
