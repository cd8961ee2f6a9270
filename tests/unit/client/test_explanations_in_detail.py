"""What a job's explanation says for each cause and state, and how durations, sizes and progress are written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from paddlejob.client.describe.explain import MAX_EVENTS, as_data, explain
from paddlejob.client.describe.formats import as_list, to_json, to_yaml
from paddlejob.client.describe.humanize import age, duration, plural, restarts, run_time, size
from paddlejob.client.describe.log_lines import LONGEST, lines_of
from paddlejob.client.describe.log_tail import MAX_LINE_LENGTH, last_lines, readable
from paddlejob.client.describe.next_step import CHANGE_THE_JOB, CHANGE_THE_QUEUE, next_step
from paddlejob.client.describe.progress import fraction, position, progress_line, progress_page, reported_output
from paddlejob.client.targets.target import EventView, JobView, LastOutput, PodView
from paddlejob.plan import times
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


@pytest.mark.parametrize("reason", CHANGE_THE_JOB)
def test_a_reason_that_logs_say_nothing_about_asks_for_a_change_of_the_job(reason: str):
    assert next_step(view("Failed", reason=reason), None) == "change the job as described above, then run it again."


@pytest.mark.parametrize("reason", CHANGE_THE_QUEUE)
def test_a_queue_that_cannot_admit_a_job_has_to_be_changed(reason: str):
    assert next_step(view("Pending", reason=reason), None).startswith("do what is described above; `pdj get mnist -n")
    assert next_step(view("Failed", reason=reason), None).startswith("read `pdj logs mnist -n team`")


def test_the_lists_of_reasons_name_those_that_the_planner_gives():
    assert set(CHANGE_THE_JOB) == {
        "DeadlineExceeded", "StartError", "InvalidTemplate", "EnvironmentTooLarge", "InvalidSpec"
    }  # fmt: skip
    assert set(CHANGE_THE_QUEUE) == {
        "KueueMissing", "Inadmissible", "Deactivated", "PriorityClassUnreadable", "FlavorUnreadable"
    }  # fmt: skip


def test_the_next_step_of_a_job_follows_from_its_state():
    pod = PodView("mnist-worker-0", "worker", 0, "Succeeded")
    assert next_step(view("Completed", pods=[pod]), None) == (
        "read `pdj logs mnist -n team`, or remove the job with `pdj delete mnist -n team`."
    )
    assert next_step(view("Completed"), None) == "remove the job with `pdj delete mnist -n team`."
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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m0s"), (599, "9m59s"), (600, "10m"), (7199, "119m"),
        (7200, "2h0m"), (7260, "2h1m"), (172799, "47h59m"), (172800, "2d"),
    ],
)  # fmt: skip
def test_durations_read_as_kubectl_writes_them(seconds: float, text: str):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"), (9, "9"), (999, "999"), (1000, "1.0Ki"), (10 << 10, "10Ki"), (999 << 10, "999Ki"), (1 << 20, "1.0Mi"),
        (2 << 30, "2.0Gi"), (5 << 40, "5.0Ti"), (5000 << 40, "5000Ti"),
    ],
)  # fmt: skip
def test_sizes_have_the_largest_unit_that_fits(count: float, text: str):
    assert size(count) == text


def test_counts_and_times_of_a_job_are_written_for_people():
    assert (plural(0, "pod"), plural(1, "pod"), plural(2, "pod")) == ("0 pods", "1 pod", "2 pods")
    counted = job(status={"restarts": 1, "disruptions": 2, "ignoredFailures": 3})
    assert restarts(counted) == ", 1 restart, 2 disruptions, 3 ignored failures"
    assert restarts(job()) == ""
    created = job()
    started = {"startTime": "2027-01-15T08:00:00Z", "completionTime": "2027-01-15T08:00:09Z"}
    assert run_time(job(status=started)) == "9s"
    assert run_time(job(status={"startTime": times.format(time.time() - 7200)})) == "2h0m"
    recent = created.metadata.model_copy(update={"creationTimestamp": times.format(time.time() - 7200)})
    unknown = created.metadata.model_copy(update={"creationTimestamp": ""})
    assert run_time(created.model_copy(update={"metadata": recent})) == "2h0m", "since it was created"
    assert run_time(created.model_copy(update={"metadata": unknown})) == "0s"
    assert age(created.model_copy(update={"metadata": recent})) == "2h0m"
    assert age(created.model_copy(update={"metadata": unknown})) == ""


def test_objects_are_written_in_the_order_of_their_fields_and_without_aliases():
    shared = {"名": "值"}
    assert to_yaml({"b": shared, "a": shared}, {"c": 1}) == "b:\n  名: 值\na:\n  名: 值\n---\nc: 1\n"
    assert to_json({"名": [1]}) == '{\n  "名": [\n    1\n  ]\n}\n'
    assert as_list([{"a": 1}]) == {"apiVersion": "v1", "kind": "List", "items": [{"a": 1}]}


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


def test_a_line_of_any_length_comes_whole_up_to_the_longest():
    assert list(lines_of([b"a\nb", b"c\n", b"d"])) == [b"a\n", b"bc\n", b"d"]
    whole = b"x" * LONGEST
    assert list(lines_of([whole])) == [whole]
    assert list(lines_of([whole, b"\n"])) == [whole + b"\n"]
    assert list(lines_of([whole + b"y", b"z\n"])) == [whole + b"y\n", b"z\n"]
    assert LONGEST == 1 << 20


def test_the_end_of_a_log_is_readable(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"0\n" + b"1\n" * 3 + b"\x1b[31mred\x1b[0m\r\n10%\r20%\r30%\n\n\n" + b"x" * 301 + b"\n")
    assert last_lines(log, 3) == ["red", "30%", "x" * MAX_LINE_LENGTH + " ..."]
    assert last_lines(log, 99)[0] == "0"
    assert last_lines(log, 99, max_bytes=303) == ["x" * 300 + " ..."]
    assert last_lines(tmp_path / "absent", 3) == []
    assert readable("x" * MAX_LINE_LENGTH, 1) == ["x" * MAX_LINE_LENGTH]
    noise = "LAUNCH INFO 2027 start\nI0115 08:00:00.123456 1 x.cc:1] y\nloss 1\na.py:1: UserWarning: old\n"
    assert readable(noise, 9, without_noise=True) == ["loss 1"]
    assert len(readable(noise, 9)) == 4
