"""What `pdj why` suggests to do next."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.client.describe.next_step import next_step
from paddlejob.targets.views import JobView, PodView
from tests.support.builders import job


def view(phase: str, *, note: str = "", pods: list[PodView] | None = None, spec: Any = None, **status: Any) -> JobView:
    made = job(status={"phase": phase, "attempt": 1, **status}, **spec or {})
    return JobView(made, {}, phase, note, pods or [], flags=" -n team")


@pytest.mark.parametrize(
    "reason", ["DeadlineExceeded", "StartError", "InvalidTemplate", "EnvironmentTooLarge", "InvalidSpec"]
)
def test_a_reason_that_logs_say_nothing_about_asks_for_a_change_of_the_job(reason: str):
    assert next_step(view("Failed", reason=reason), None) == "change the job as described above, then run it again."


@pytest.mark.parametrize(
    "reason", ["KueueMissing", "Inadmissible", "Deactivated", "PriorityClassUnreadable", "FlavorUnreadable"]
)
def test_a_queue_that_cannot_admit_a_job_has_to_be_changed(reason: str):
    assert next_step(view("Pending", reason=reason), None).startswith("do what is described above; `pdj get mnist -n")
    assert next_step(view("Failed", reason=reason), None).startswith("read `pdj logs mnist -n team`")


def test_the_next_step_of_a_job_follows_from_its_state():
    pod = PodView("mnist-worker-0", "worker", 0, "Succeeded")
    assert next_step(view("Completed", pods=[pod]), None) == (
        "read `pdj logs mnist -n team`, or remove the job and its logs with `pdj delete mnist -n team`."
    )
    assert next_step(view("Completed"), None) == "remove the job and its logs with `pdj delete mnist -n team`."
    assert next_step(view("Suspended", spec={"suspend": True}), None) == "run `pdj resume mnist -n team` to continue."
    assert next_step(view("Starting"), None) == "wait; `pdj get mnist -n team` shows the state of each replica."
    assert next_step(view("Failed", spec={"cleanPodPolicy": "Always"}), None) == (
        "fix the cause, then run the job again; with cleanPodPolicy: OnCompletion its logs are kept."
    )
    kept = view("Failed", pods=[pod], spec={"cleanPodPolicy": "Always"})
    assert next_step(kept, pod).startswith("read `pdj logs mnist --role worker --index 0 -n team`")
    unreserved = {"conditions": [{"type": "QuotaReserved", "status": "False"}], "queue": "q"}
    assert next_step(view("Suspended", spec={"suspend": True}, **unreserved), None).startswith("run `pdj resume")
    assert next_step(view("Suspended", **unreserved), None).startswith("wait until its queue has quota; `kubectl get")
