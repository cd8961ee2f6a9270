"""What people see of a job's progress: in lists, on its page, in `pdj why`, while it runs and when it has ended."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paddlejob.api.types import Progress
from paddlejob.cli.output.tables import job_page, job_table
from paddlejob.cli.run import plain
from paddlejob.cli.run.live import render
from paddlejob.cli.run.observation import observer
from paddlejob.cli.run.plain import PlainScreen
from paddlejob.cli.run.summary import summarize
from paddlejob.client.describe.explain import as_data, explain
from paddlejob.client.describe.progress import progress_line
from paddlejob.local.state.store import JobStore
from paddlejob.logs.files import last_lines
from paddlejob.plan import times
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.log_views import LastOutput
from paddlejob.targets.views import EventView, JobView, PodView
from tests.support.builders import job

METRICS = {"learning_rate": 0.001, "samples_per_second": 1234.5, "loss": 0.25126, "accuracy": 0.5}
NOISE = """\
LAUNCH INFO 2026-01-02 03:04:05,678 Watching Pod: abcdef, replicas 1, status running
I0102 03:04:05.678901   123 gloo_context.cc:55] connected
/usr/lib/python3/paddle/utils.py:711: UserWarning: no ccache found
"""


def view(phase: str = "Running", pods: list[PodView] | None = None, **progress: Any) -> JobView:
    status: dict[str, Any] = {"phase": phase, "attempt": 1, "reason": "Ok", "message": "all pods are running"}
    status |= {"goodput": progress.pop("goodput")} if "goodput" in progress else {}
    return JobView(job(status={**status, "progress": progress}), {}, phase, pods=pods or [])


def in_seconds(seconds: float) -> str:
    return times.format(time.time() + seconds)


@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        ({"step": 1200, "totalSteps": 5000, "epoch": 3, "totalEpochs": 10}, "1200/5000"),
        ({"step": 1200, "epoch": 3, "totalEpochs": 10}, "epoch 3/10"),
        ({"epoch": 0, "totalEpochs": 10}, "epoch 0/10"),
        ({"step": 0}, "step 0"),
        ({"epoch": 3}, "epoch 3"),
        ({}, ""),
    ],
)
def test_progress_has_a_summary_for_columns_that_is_written_with_it(fields: dict[str, int], summary: str):
    progress = Progress(**fields)
    assert progress.summary == summary
    assert progress.model_dump(mode="json", exclude_defaults=True)["summary"] == summary
    assert Progress.model_validate(progress.model_dump()) == progress


def test_the_list_has_a_column_for_progress():
    table = job_table([view(step=12, totalSteps=50), view("Pending")])
    header, first, second = table.splitlines()
    assert header.split()[4:7] == ["WORKER", "PROGRESS", "AGE"]
    assert header.index("PROGRESS") == first.index("12/50")
    assert "12/50" not in second


def test_the_page_shows_step_metrics_end_output_checkpoint_and_goodput():
    shown = view(
        step=1200, totalSteps=5000, epoch=3, totalEpochs=10, metrics=METRICS, eta=in_seconds(299), checkpointStep=1000,
        goodput=93,
    )  # fmt: skip
    lines = job_page(shown, LastOutput("worker-0", time.time() - 12)).splitlines()
    assert lines[2].startswith(
        "step 1200/5000, epoch 3/10, loss 0.2513, lr 0.001, accuracy 0.5, 1,234 samples/s, ETA 4m"
    ), lines[2]
    assert re.fullmatch(r"last output \d+s ago, last checkpoint at step 1000, goodput 93%", lines[3])


def test_a_page_without_progress_is_as_before():
    assert job_page(view()).splitlines() == job_page(JobView(view().job, {}, "Running")).splitlines()
    assert len(job_page(view()).splitlines()) == 2


def test_a_loss_of_nan_is_shown_as_such():
    line = progress_line(view(step=3, nonFinite={"loss": "nan"}, metrics={"accuracy": 0.1}).job)
    assert line == "step 3, loss nan, accuracy 0.1"


def test_an_end_that_has_passed_or_of_a_job_that_does_not_run_is_not_shown():
    assert "ETA" not in progress_line(view(step=3, eta=in_seconds(-5)).job)
    assert "ETA" not in progress_line(view("Completed", step=3, eta=in_seconds(60)).job)


def test_why_tells_progress_and_the_last_output_also_when_the_logs_are_gone():
    shown = view("Failed", step=30, totalSteps=60, lastOutputTime=in_seconds(-90))
    text = str(explain(shown))
    assert "Progress: step 30/60." in text
    assert re.search(r"^Last output: \d+\w+ ago\.$", text, re.MULTILINE)
    assert as_data(shown, None)["progress"] == "step 30/60"


def test_why_prefers_the_output_that_it_has_just_read():
    shown = view(step=30, totalSteps=60, lastOutputTime=in_seconds(-300))
    assert re.search(
        r"Last output: \d+s ago, from worker-1\.", str(explain(shown, LastOutput("worker-1", time.time())))
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "worker-0.log"
    path.write_text("first\nsecond\nthird\n" + NOISE)
    return path


def drawn(shown: JobView, height: int = 10) -> str:
    console = Console(width=120, record=True, quiet=True)
    with console.capture() as captured:
        console.quiet = False
        seen = observer(LocalTarget(JobStore(Path("/nonexistent"))))(shown, height)
        console.print(render(shown, seen, height))
    return captured.get()


def test_the_live_view_shows_progress_instead_of_what_the_framework_prints(log: Path):
    pods = [PodView("mnist-worker-0", "worker", 0, "Running", log=str(log))]
    before = drawn(view(pods=pods))
    assert "UserWarning" in before and "gloo_context" in before
    after = drawn(view(pods=pods, step=30, totalSteps=60, metrics={"loss": 0.5}))
    assert "step 30/60, loss 0.5" in after
    assert "third" in after and "first" not in after
    assert "UserWarning" not in after and "gloo_context" not in after and "LAUNCH INFO" not in after


def test_the_live_view_shows_the_whole_end_of_the_log_of_a_replica_that_failed(log: Path):
    pods = [PodView("mnist-worker-0", "worker", 0, "Failed", log=str(log))]
    assert "UserWarning" in drawn(view("Failed", pods=pods, step=30, totalSteps=60))


def test_lines_for_pipes_show_progress_once_for_every_step(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plain, "LOG_INTERVAL", 0.0)
    pods = [PodView("mnist-worker-0", "worker", 0, "Running", log=str(log))]
    screen = PlainScreen()
    for step, left in ((10, 600), (10, 500), (20, 400)):
        screen.show([view(pods=pods, step=step, totalSteps=60, metrics={"loss": 0.5}, eta=in_seconds(left))])
    lines = [line.split(": ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert [line.partition(", ETA")[0] for line in lines] == [
        "Running: all pods are running",
        "step 10/60, loss 0.5",
        "step 20/60, loss 0.5",
    ]


def test_lines_for_pipes_tell_of_a_restart_that_was_over_before_its_phase_was_seen(capsys: pytest.CaptureFixture[str]):
    failed = "mnist-worker-1 failed with exit status 1; restart 1 now"
    event = EventView("", "ProgramFailed", f"{failed}\nits last lines", warning=True)
    screen = PlainScreen()
    for events in ([], [event], [event]):
        screen.show([replace(view(), events=events)])
    assert [line.split(": ", 1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "Running: all pods are running",
        f"ProgramFailed: {failed}",
    ]


def test_an_event_that_the_status_tells_too_is_printed_once(capsys: pytest.CaptureFixture[str]):
    failed = "mnist-worker-1 failed with exit status 1; restart 2 in 2 s"
    event = EventView("", "ProgramFailed", failed, warning=True)
    seen = view("Restarting")
    status = seen.job.status.model_copy(update={"message": failed})
    restarting = replace(seen, job=seen.job.model_copy(update={"status": status}))
    screen = PlainScreen()
    screen.show([restarting])
    screen.show([replace(restarting, events=[event])])
    screen.show([replace(view(), events=[event])])
    assert capsys.readouterr().out.count(failed) == 1


def test_an_event_that_is_seen_before_the_status_tells_it_is_printed_once(capsys: pytest.CaptureFixture[str]):
    event = EventView("", "Completed", "the worker succeeded")
    completed = view("Completed")
    status = completed.job.status.model_copy(update={"message": "the worker succeeded"})
    screen = PlainScreen()
    screen.show([replace(view(), events=[])])
    screen.show([replace(view(), events=[event])])
    screen.show([replace(completed, job=completed.job.model_copy(update={"status": status}), events=[event])])
    assert [line.split(": ", 1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "Running: all pods are running",
        "Completed: the worker succeeded",
    ]


def test_the_summary_of_a_run_shows_progress_instead_of_what_the_framework_prints(
    log: Path, capsys: pytest.CaptureFixture[str]
):
    pods = [PodView("mnist-worker-0", "worker", 0, "Succeeded", log=str(log))]
    with log.open("a") as file:
        file.write("step 60/60 loss=0.25\n")
    assert summarize(view("Completed", pods=pods, step=60, totalSteps=60, metrics=METRICS)) == ""
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("mnist completed in ")
    assert lines == [
        "  step 60/60, loss 0.2513, lr 0.001, accuracy 0.5, 1,234 samples/s",
        *("  second", "  third"),
    ]


def test_the_summary_of_a_run_that_failed_shows_how_far_it_came(capsys: pytest.CaptureFixture[str]):
    assert summarize(view("Failed", epoch=3, totalEpochs=10)).startswith("mnist failed: ")
    assert " at epoch 3/10; for details run `pdj why mnist`" in capsys.readouterr().out


def test_why_has_a_hint_for_a_loss_that_is_not_a_number():
    assert "Hint: The loss is nan. Lower the learning rate" in str(explain(view(step=3, nonFinite={"loss": "nan"})))


def test_noise_is_left_out_of_the_last_lines_only_on_request(log: Path):
    assert last_lines(log, 2, without_noise=True) == ["second", "third"]
    assert last_lines(log, 1) == ["/usr/lib/python3/paddle/utils.py:711: UserWarning: no ccache found"]
