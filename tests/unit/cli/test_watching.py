"""Watching jobs until they end: signals, clusters that do not answer, output that goes away, and the summary."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import Status
from paddlejob.cli.run.attach import detach, look_again, watch_jobs
from paddlejob.cli.run.output import LastingOutput
from paddlejob.cli.run.signals import Signals
from paddlejob.cli.run.summary import summarize
from paddlejob.cli.run.watch import is_shared, watch
from paddlejob.errors import BadInput, JobFailed, Unreachable
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobStore
from paddlejob.targets.views import JobView, PodView
from tests.support.builders import NOON, document, job
from tests.support.job_views import ENDED, view


def test_the_end_of_a_job_is_summarized(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "log").write_text("saved to /out\nstep 4/4 loss=1\n")
    pods = [PodView("w", "worker", 0, "Succeeded", log=str(tmp_path / "log"))]
    done = view("Completed", pods=pods, progress={"step": 4, "totalSteps": 4}, restarts=1, **ENDED)
    assert summarize(done) == ""
    assert (
        capsys.readouterr().out == f"mnist completed in 90s, 1 restart; logs: {tmp_path}\n  step 4/4\n  saved to /out\n"
    )
    assert summarize(view("Completed", flags=" -n t", **ENDED)) == ""
    assert capsys.readouterr().out == "mnist completed in 90s; logs: `pdj logs mnist -n t`\n"
    failed = view("Failed", flags=" -n t", reason="R", message="m", progress={"step": 4, "totalSteps": 9}, **ENDED)
    assert summarize(failed) == "mnist failed: R: m"
    assert capsys.readouterr().out == "mnist failed after 90s at step 4/9; for details run `pdj why mnist -n t`\n"
    assert summarize(view("Suspended", flags=" -n t")) == "mnist is suspended; run `pdj resume mnist -n t` to continue"
    assert summarize(view("Running", note="killed")) == "mnist: killed"
    assert summarize(JobView(job(status={"phase": "Running"}), {}, "Interrupted")) == "mnist: Interrupted"


class Runner:
    """A runner that ends when it is killed; a second signal follows the first."""

    def __init__(self, signals: Signals, alive: bool = True) -> None:
        self.alive = alive
        self.got: list[str] = []
        self.signals = signals

    def interrupt(self) -> None:
        self.got.append("interrupt")
        self.signals.count = 2

    def kill(self) -> None:
        self.got.append("kill")
        self.alive = False


class Said:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.closed = 0

    def show(self, views: list[JobView]) -> None:
        pass

    def say(self, message: str) -> None:
        self.said.append(message)

    def close(self) -> None:
        self.closed += 1


def test_the_first_signal_stops_and_the_second_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    signals = Signals()
    signals.count, signals.last = 1, signal.SIGINT
    runner: Any = Runner(signals)
    assert watch(JobStore(tmp_path), [], runner, signals) == 130
    assert runner.got == ["interrupt", "kill"]
    assert capsys.readouterr().out.count("Stopping; press Ctrl-C again to kill now.") == 1


class Undrawable(Said):
    def show(self, views: list[JobView]) -> None:
        raise UnicodeDecodeError("utf-8", b"\xe8", 0, 1, "unexpected end of data")


@pytest.mark.parametrize("lines_too", [False, True])
def test_a_view_that_cannot_be_drawn_becomes_lines_or_nothing_and_training_goes_on(
    lines_too: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    store, signals, live = JobStore(tmp_path), Signals(), Undrawable()
    folder, lock = store.begin(document(), RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Completed", **ENDED}))
    monkeypatch.setattr("paddlejob.cli.run.watch.open_screen", lambda *_: live)
    if lines_too:
        monkeypatch.setattr("paddlejob.cli.run.plain.PlainScreen", Undrawable)
    ended: Any = Runner(signals, alive=False)
    assert watch(store, [("default", "mnist")], ended, signals) == 0
    lock.release()
    shown = capsys.readouterr()
    assert live.closed == 1
    assert ("s mnist: Completed" in shown.out) is not lines_too
    assert shown.err.count("the view failed, the jobs keep running") == 1 and "UnicodeDecodeError" in shown.err


def test_signals_are_counted_and_put_back_and_ignored_ones_stay_ignored():
    before = signal.getsignal(signal.SIGTERM)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            assert (signals.count, signals.exit_code) == (1, 128 + signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            assert (signals.count, signals.exit_code) == (2, 130)
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, hangup)


def test_the_exit_status_of_a_run_follows_from_its_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    store, signals = JobStore(tmp_path), Signals()
    ended: Any = Runner(signals, alive=False)
    folder, lock = store.begin(document(), RunOptions(), NOON)
    folder.write_status(Status.model_validate({"phase": "Completed", **ENDED}))
    assert watch(store, [("default", "mnist")], ended, signals) == 0
    with pytest.raises(JobFailed) as raised:
        watch(store, [("a", "x"), ("b", "x"), ("c", "y")], ended, signals)
    assert str(raised.value).splitlines() == [f"{name} was deleted while it ran" for name in ("a/x", "b/x", "y")]
    folder.write_status(Status.model_validate({"phase": "Suspended"}))
    with pytest.raises(JobFailed, match="mnist is suspended; run `pdj resume mnist`"):
        watch(store, [("default", "mnist")], ended, signals)
    capsys.readouterr()
    signals.count, signals.last = 1, signal.SIGINT
    assert watch(store, [("default", "mnist")], ended, signals) == 130
    assert "pdj: mnist is suspended; run `pdj resume mnist`" in capsys.readouterr().err
    lock.release()
    assert is_shared(("a", "x"), [("a", "x"), ("b", "x")]) and not is_shared(("a", "x"), [("a", "x"), ("b", "y")])


class Target:
    """A target with one job, which a test changes."""

    pause = 0.0
    target = None

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def job(self, namespace: str, name: str) -> JobView:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def test_watching_goes_on_while_a_cluster_does_not_answer_and_ends_when_a_job_is_deleted():
    target: Any = Target(Unreachable("no route"))
    screen = Said()
    seen = look_again(target, [view()], screen)
    assert (seen[0].note, screen.said) == ("no route; trying again", ["pdj: no route; trying again"])
    look_again(target, seen, screen)
    assert len(screen.said) == 1, "said once"
    gone: Any = Target(BadInput("not found"))
    with pytest.raises(JobFailed, match="mnist was deleted"):
        look_again(gone, [view()], screen)


def test_who_stops_watching_learns_how_to_go_on(capsys: pytest.CaptureFixture[str]):
    screen = Said()
    assert detach(screen, [view(flags=" -n t"), view("Completed")], 7) == 7
    assert screen.closed == 1
    assert capsys.readouterr().out == "mnist keeps training; watch it again with `pdj watch mnist -n t`\n"


def test_jobs_are_watched_until_all_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    target: Any = Target(view(), view(), view("Completed", **ENDED))
    assert watch_jobs(target, [("default", "mnist")]) == 0
    assert "mnist completed in 90s" in capsys.readouterr().out
    failing: Any = Target(view("Failed", reason="R", message="m", **ENDED))
    with pytest.raises(JobFailed, match="mnist failed: R: m"):
        watch_jobs(failing, [("default", "mnist")])


class Broken:
    """A stream whose reader has gone away."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        self.broken = True

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        if self.broken:
            self.broken = False
            raise self.error


@pytest.mark.parametrize(
    ("error", "what"),
    [(BrokenPipeError(errno.EPIPE, "gone"), "was closed"), (OSError(errno.ENOSPC, "full"), "cannot be written (full)")],
)
def test_output_that_goes_away_is_reported_and_the_jobs_go_on(
    error: OSError, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    closed: list[int] = []
    monkeypatch.setattr("paddlejob.cli.run.output.discard", closed.append)
    stream: Any = Broken(error)
    output = LastingOutput(stream)
    assert output.write("hello") == 5
    assert f"pdj: standard output {what}; the jobs keep running." in capsys.readouterr().err
    output.flush()
    assert 1 in closed
