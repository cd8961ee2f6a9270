"""Changes of a job that exists, as `pdj` checks them; tests/apiserver applies the same changes to a real server."""

from __future__ import annotations

from paddlejob.api.validate import change_faults
from tests.support.builders import document, template

OTHER = template(command=["true"])


def test_a_template_may_change_in_the_update_that_suspends_the_job():
    after = document(suspend=True, workers=3, worker_={"template": OTHER})
    assert change_faults(after, document()) == []


def test_a_template_and_the_workers_stay_as_they_are_while_the_job_runs():
    found = change_faults(document(workers=3, worker_={"template": OTHER}), document())
    assert [fault.partition(":")[0] for fault in found] == ["spec.worker.template", "spec.worker"]
    assert all("suspend" in fault for fault in found)


def test_what_never_changes_does_not_change_with_a_suspension_either():
    assert change_faults(document(suspend=True, intranet="Host"), document()) != []
