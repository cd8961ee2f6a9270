"""How far training is, as text."""

from __future__ import annotations

import time
from typing import Any

from paddlejob.client.describe.explain import explain
from paddlejob.client.describe.progress import fraction, position, progress_line, progress_page, reported_output
from paddlejob.plan import times
from paddlejob.targets.log_views import LastOutput
from paddlejob.targets.views import JobView, PodView
from tests.support.builders import job


def view(phase: str, *, note: str = "", pods: list[PodView] | None = None, spec: Any = None, **status: Any) -> JobView:
    made = job(status={"phase": phase, "attempt": 1, **status}, **spec or {})
    return JobView(made, {}, phase, note, pods or [], flags=" -n team")


def progressing(phase: str = "Running", *, goodput: int | None = None, **fields: Any) -> Any:
    status: dict[str, Any] = {"phase": phase, "progress": fields} if fields else {"phase": phase}
    return job(status=status | ({"goodput": goodput} if goodput is not None else {}))


def test_progress_is_a_fraction_where_the_end_is_known():
    assert fraction(progressing(step=1, totalSteps=4)) == 0.25
    assert fraction(progressing(step=0, totalSteps=4)) == 0.0
    assert fraction(progressing(step=9, totalSteps=4)) == 1.0
    assert fraction(progressing(step=9, epoch=1, totalEpochs=2)) == 0.5
    assert fraction(progressing(step=9)) is None
    assert fraction(progressing()) is None


def test_progress_is_one_line_with_what_is_known():
    assert progress_line(progressing()) == ""
    assert position(progressing(step=1, totalSteps=4)) == "step 1/4"
    assert position(progressing(epoch=1, totalEpochs=4)) == "epoch 1/4"
    full = {
        "step": 3, "totalSteps": 9, "epoch": 1, "totalEpochs": 2, "eta": times.format(time.time() + 7200.9),
        "metrics": {"samples_per_second": 1234.6, "accuracy": 0.12345, "learning_rate": 0.001, "loss": 2.0},
    }  # fmt: skip
    shown = "step 3/9, epoch 1/2, loss 2, accuracy 0.1235, lr 0.001, 1,235 samples/s"
    assert progress_line(progressing(**full)) in {f"{shown}, ETA 2h0m", f"{shown}, ETA 119m"}
    assert progress_line(progressing(**full), eta=False) == shown
    assert progress_line(progressing("Suspended", **full)) == shown
    assert progress_line(progressing(**full | {"eta": times.format(time.time() - 9)})) == shown
    assert progress_line(progressing(epoch=1, totalEpochs=2)) == "epoch 1/2", "once"
    assert progress_line(progressing(step=1, epoch=1)) == "step 1"
    slow = {"step": 1, "metrics": {"samples_per_second": 99.5}}
    assert progress_line(progressing(**slow)) == "step 1, 99.5 samples/s"
    assert progress_line(progressing(**slow | {"metrics": {"samples_per_second": 100.0}})) == "step 1, 100 samples/s"


def test_a_page_has_the_line_and_how_recent_it_is():
    output = LastOutput("worker-0", time.time() - 7200)
    told = progressing(step=3, checkpointStep=0, goodput=0)
    assert progress_page(told, output) == [
        "step 3",
        "last output 2h0m ago, last checkpoint at step 0, goodput 0%",
    ]
    assert progress_page(progressing("Completed", step=3), output) == ["step 3"]
    assert progress_page(progressing(), None) == []


def test_the_last_output_is_taken_from_the_status_where_it_holds_one():
    assert reported_output(progressing(step=1)) is None
    assert reported_output(progressing()) is None
    found = reported_output(progressing(step=1, lastOutputTime="2027-01-15T08:00:00Z"))
    assert found == LastOutput("", 1800000000.0)
    text = str(explain(view("Failed", message="m", progress={"lastOutputTime": times.format(time.time() - 7200)})))
    assert "Last output: 2h0m ago.\n" in text
