"""Jobs and replicas as people see them."""

from __future__ import annotations

import pytest

from paddlejob.targets.views import JobView, PodView, has_ended
from tests.support.builders import job


def test_a_replica_is_written_for_programs_without_what_is_not_known():
    full = PodView("n", "worker", 1, "Failed", 2, "10.0.0.1", 3, "/log", "a note", 7, "node-1")
    assert full.as_data() == {
        "name": "n", "role": "worker", "index": 1, "state": "Failed", "attempt": 2, "address": "10.0.0.1", "pid": 7,
        "node": "node-1", "log": "/log", "note": "a note", "exitCode": 3,
    }  # fmt: skip
    assert PodView("n", "ps", 0, "Pending").as_data() == {"name": "n", "role": "ps", "index": 0, "state": "Pending"}
    assert PodView("n", "ps", 0, "Succeeded", exit_code=0).as_data()["exitCode"] == 0
    assert (full.exit_text, PodView("n", "ps", 0, "Pending").exit_text) == ("3", "")


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Suspended", "Interrupted", "Damaged"])
def test_a_job_has_ended_when_nothing_changes_by_itself(phase: str):
    assert has_ended(JobView(job(suspend=True), {}, phase))
    assert has_ended(JobView(job(), {}, phase)) == (phase != "Suspended")


@pytest.mark.parametrize("phase", ["Created", "Pending", "Running", "Restarting", "Deleting"])
def test_a_job_that_goes_on_has_not_ended(phase: str):
    assert not has_ended(JobView(job(suspend=True), {}, phase))


def test_a_job_is_named_with_its_namespace_where_that_is_in_doubt():
    assert JobView(job(), {}, "Running").title == "mnist"
    assert JobView(job(), {}, "Running", qualified=True).title == "default/mnist"
    named = JobView(job(status={"message": "mnist-worker-1 failed\nmnist-worker-2"}), {}, "Failed")
    assert [named.names(PodView(f"mnist-worker-{index}", "worker", index, "Failed")) for index in (1, 2)] == [
        True,
        False,
    ]
    assert JobView(job(status={"message": "a\nb"}), {}, "Failed").headline == "a"
    assert JobView(job(status={"message": "a\nb"}), {}, "Failed", note="n").headline == "n"
