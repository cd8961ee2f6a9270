"""What a job's explanation says for each cause and state."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from paddlejob.client.describe.explain import MAX_EVENTS, as_data, explain
from paddlejob.client.describe.humanize import age
from paddlejob.targets.log_views import LastOutput
from paddlejob.targets.views import EventView, JobView, PodView
from tests.support.builders import job


def view(phase: str, *, note: str = "", pods: list[PodView] | None = None, spec: Any = None, **status: Any) -> JobView:
    made = job(status={"phase": phase, "attempt": 1, **status}, **spec or {})
    return JobView(made, {}, phase, note, pods or [], flags=" -n team")


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("ModuleNotFoundError: No module named 'paddle'", "PaddlePaddle is not installed in the Python that ran"),
        ("ModuleNotFoundError: No module named 'pandas.core'", "has no module pandas.core. Install it there"),
        ("AttributeError: DistFleetWrapper", "This build of PaddlePaddle has no parameter server"),
        ("sh: 1: cd: can't cd to /data/mnist", "/data/mnist does not exist because the volume mounted above it"),
        ("sh: 1: cd: /data/mnist: No such file", "/data/mnist does not exist because the volume mounted above it"),
        ("python: can't open file '/train.py': [Errno 2]", "The program /train.py does not exist"),
        ("OSError: [Errno 28] No space left on device", "A disk is full. Free some space"),
        ("the log ends here because the disk is full", "A disk is full. Free some space"),
        ("OSError: [Errno 98] Address already in use", "A port is already in use at the address of the pod"),
        ("mnist-worker-0 ended with exit status 137", "the process was killed, usually because memory ran out"),
        ("mnist-worker-0 ended with exit status 139", "Exit status 139 means a crash in native code"),
        ("mnist-worker-0 ended with exit status 1370", ""),
        ("mnist-worker-0 failed with exit status 247", "one of its processes was killed, usually because memory"),
        ("mnist-worker-0 failed with exit status 241", "one of its processes was terminated (SIGTERM)"),
        ("worker-0 could not start: trian: no such command", "The command does not exist. Check its spelling."),
        ("worker-0 could not start: /x: No such file", "The command does not exist. Check its spelling."),
        ("CUDA error: no device", "The program requires a GPU"),
        ("libcuda.so.1: cannot open", "The program requires a GPU"),
        ("ValueError: bad learning rate", ""),
    ],
)
def test_a_known_cause_has_a_hint_and_only_while_the_job_has_not_completed(output: str, hint: str):
    failed = explain(view("Failed", reason="ProgramFailed", message=f"mnist-worker-0 failed\n{output}"))
    assert (hint in failed.hint) if hint else failed.hint == ""
    assert ("Hint: " in str(failed)) == bool(hint)
    assert explain(view("Completed", message=output)).hint == ""


def test_the_log_of_the_replica_that_caused_the_failure_is_quoted(tmp_path: Path):
    pods = []
    for index in range(3):
        log = tmp_path / f"{index}.log"
        log.write_text(f"line of worker {index}\n")
        state = "Stopped" if index == 0 else "Failed"
        pods.append(PodView(f"mnist-worker-{index}", "worker", index, state, log=str(log)))
    named = view("Failed", pods=pods, reason="ProgramFailed", message="mnist-worker-2 ended with exit status 3\nlong")
    assert explain(named).log == ["line of worker 2"]
    assert explain(named).log_title == f"Last lines of worker-2 ({tmp_path / '2.log'}):"
    assert "long" not in str(explain(named)), "the end of the log says more"
    headed = view(
        "Failed", pods=pods, reason="ProgramFailed", message="KeyError: 7 (worker 2, exit status 1); see its log"
    )
    assert explain(headed).log == ["line of worker 2"]
    unnamed = view("Failed", pods=pods, reason="ProgramFailed", message="a pod failed\nlong")
    assert explain(unnamed).log == ["line of worker 1"], "the first that failed"
    assert "Next: read `pdj logs mnist --role worker --index 1 -n team`, fix the cause" in str(explain(unnamed))
    assert explain(view("Completed", pods=pods, message="done")).log == []
    nothing = view("Failed", reason="ProgramFailed", message="a pod failed\nlong")
    assert str(explain(nothing)).startswith("mnist failed: ProgramFailed: a pod failed\nlong\n")


def test_the_newest_events_are_shown_with_the_first_line_of_each():
    events = [EventView(f"time-{number}", "Why", f"event {number}\nmore") for number in range(MAX_EVENTS + 1)]
    seen = view("Running", message="all pods are running")
    text = str(explain(JobView(seen.job, {}, "Running", events=events)))
    assert "time-0" not in text
    assert "Events:\n  time-1  Why: event 1\n" in text
    assert "more" not in text


@pytest.mark.parametrize(
    ("phase", "note", "status", "first"),
    [
        ("Completed", "", {"message": "all 2 workers succeeded", "restarts": 2},
         "mnist completed: all 2 workers succeeded, in 1m0s, 2 restarts."),
        ("Suspended", "", {"reason": "Suspended", "message": "suspended by a user"},
         "mnist is suspended: Suspended: suspended by a user"),
        ("Running", "", {"message": "all pods are running", "disruptions": 1},
         "mnist is running: all pods are running, for 1m0s, 1 disruption."),
        ("Restarting", "", {"reason": "ProgramFailed", "message": "worker 1 failed", "restarts": 1},
         "mnist is restarting: ProgramFailed: worker 1 failed, 1 restart"),
        ("Running", "the engine was killed; resume it", {}, "mnist is running: the engine was killed"),
        ("Running", "the engine was killed", {}, "mnist is running: the engine was killed"),
    ],
)  # fmt: skip
def test_the_first_line_says_in_which_state_the_job_is(phase: str, note: str, status: dict[str, Any], first: str):
    ran = {"startTime": "2027-01-15T08:00:00Z", "completionTime": "2027-01-15T08:01:00Z"}
    line = str(explain(view(phase, note=note, **ran, **status))).splitlines()[0]
    assert line.replace("60s", "1m0s") == first


def test_states_that_do_not_read_as_is_and_a_word():
    for phase, said in (("Interrupted", "mnist was interrupted"), ("Deleting", "mnist is being deleted")):
        seen = JobView(view("Running", reason="R", message="m").job, {}, phase, flags="")
        assert str(explain(seen)).startswith(said)


def test_a_job_without_a_status_was_not_picked_up_yet():
    new = JobView(job(), {}, "Created")
    assert str(explain(new)).startswith(f"mnist: Not picked up by an operator yet ({age(new.job)} old).")


def test_the_explanation_for_programs_is_complete():
    progress = {"step": 3, "totalSteps": 9, "nonFinite": {"loss": "nan"}}
    seen = view("Running", reason="Running", message="all pods are running", progress=progress)
    seen.events.append(EventView("t", "Created", "made"))
    found = as_data(seen, LastOutput("worker-1", time.time() - 5))
    assert {**found, "lastOutput": None} == {
        "name": "mnist",
        "namespace": "default",
        "phase": "Running",
        "reason": "Running",
        "message": "all pods are running",
        "events": [{"time": "t", "reason": "Created", "message": "made", "warning": False}],
        "progress": "step 3/9, loss nan",
        "lastOutput": None,
        "log": [],
        "hint": "The loss is nan. Lower the learning rate, clip gradients, or check the data.",
        "next": "follow its output with `pdj logs -f mnist -n team`.",
    }
    assert found["lastOutput"]["replica"] == "worker-1"
    assert 5 <= found["lastOutput"]["secondsAgo"] < 60
    assert as_data(seen, LastOutput("worker-1", time.time() + 99))["lastOutput"]["secondsAgo"] == 0
    assert as_data(seen, None)["lastOutput"] is None
    assert as_data(view("Running", note="a note", message="m"), None)["message"] == "a note"
