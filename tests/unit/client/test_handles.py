"""A handle passes on what its user chooses, and a notebook shows a job while it is waited for."""

from __future__ import annotations

import asyncio
import re
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

import paddlejob as pj
from paddlejob.client import notebook
from paddlejob.logs.line import LogLine
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.series import LoggedSample, Series
from paddlejob.progress import Sample
from paddlejob.targets.target import OnRetry
from paddlejob.targets.views import JobView
from tests.support.builders import job

DONE = {"phase": "Completed", "completionTime": "2027-01-15T08:00:00Z"}


def view(**status: Any) -> JobView:
    return JobView(job(status=status), {}, status.get("phase", "Created"))


class Target:
    """Shows the given views one after the other, and notes what it is asked for."""

    pause = 0.0

    def __init__(self, *views: JobView) -> None:
        self.views = list(views)
        self.selections: list[tuple[LogSelection, bool]] = []
        self.changes: list[dict[str, Any]] = []
        self.deleted: list[tuple[str, str, bool]] = []

    def job(self, namespace: str, name: str) -> JobView:
        return self.views.pop(0) if len(self.views) > 1 else self.views[0]

    def logs(self, namespace: str, name: str, selection: LogSelection, follow: bool, on_retry: OnRetry) -> Any:
        self.selections.append((selection, follow))
        on_retry("no route")
        parts = [(b"one", b"\n"), (b"tw", b""), (b"o", b"\n"), (b"\xff", b"")]
        return not selection.role, iter([[LogLine("worker-0", 1, None, *part)] for part in parts])

    def samples(self, namespace: str, name: str) -> Iterator[LoggedSample]:
        told = [(1, 1, 2.0), (1, None, 7.0), (2, 2, 1.0)]
        return (LoggedSample(attempt, None, Sample(step=step, metrics={"loss": loss})) for attempt, step, loss in told)

    def series(self, namespace: str, name: str) -> Series:
        return Series({})

    def last_output(self, seen: JobView) -> None:
        return None

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        self.changes.append(fields)

    def delete(self, namespace: str, name: str, wait: bool) -> None:
        self.deleted.append((namespace, name, wait))


def run_of(*views: JobView) -> tuple[pj.Run, Target]:
    target = Target(*views)
    return pj.Run(target, "team", "mnist"), target  # type: ignore[arg-type]


def test_lines_are_chosen_by_replica_attempt_time_and_pattern():
    run, target = run_of(view())
    with pytest.warns(UserWarning, match="no route; trying again"):
        assert next(run.logs()) == "[worker-0] one"
    assert target.selections.pop() == (LogSelection(), False)
    with pytest.warns(UserWarning, match="no route"):
        lines = list(run.logs(follow=True, role="ps", index=1, attempt=2, tail=3, since=60, grep="loss", run=4))
    assert lines == ["one", "two", "\ufffd"]
    chosen, follow = target.selections.pop()
    assert (follow, chosen.role, chosen.index, chosen.attempt, chosen.tail, chosen.run) == (True, "ps", 1, 2, 3, 4)
    assert chosen.since == pytest.approx(time.time() - 60, abs=30)
    assert chosen.pattern == re.compile(b"loss")


def test_changes_and_the_removal_of_a_job_are_passed_on():
    run, target = run_of(view())
    run.scale(3)
    run.suspend()
    run.resume()
    run.delete()
    assert target.changes == [{"worker": {"replicas": 3}}, {"suspend": True}, {"suspend": False}]
    assert target.deleted == [("team", "mnist", True)]


def test_metrics_have_a_step_each():
    run, _ = run_of(view())
    assert run.metrics() == [(1, 2.0), (2, 1.0)]
    assert run.metrics("accuracy") == []


def test_a_job_is_waited_for_by_looking_at_it_again():
    run, _ = run_of(view(phase="Pending"), view(phase="Running"), view(**DONE))
    assert run.wait(timeout=60).phase == "Completed"
    again, _ = run_of(view(phase="Pending"), view(phase="Running"), view(**DONE))
    assert asyncio.run(again.wait_async()).phase == "Completed"
    assert (again.phase, again.status.phase) == ("Completed", "Completed")
    slow, _ = run_of(view(phase="Running"))
    with pytest.raises(TimeoutError, match=r"mnist is still Running after 0\.01 s"):
        slow.wait(timeout=0.01)


def test_an_interrupt_while_waiting_ends_the_processes_of_the_job(monkeypatch: pytest.MonkeyPatch):
    run, _ = run_of(view(phase="Running"))
    interrupted: list[str] = []
    monkeypatch.setattr(pj.Run, "interrupt", lambda self: interrupted.append(self.name))

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("paddlejob.client.handle.time.sleep", stop)
    with pytest.raises(KeyboardInterrupt):
        run.wait()
    assert interrupted == ["mnist"]


class Shown:
    def __init__(self) -> None:
        self.pages: list[str] = []

    def update(self, page: str) -> None:
        self.pages.append(page)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A notebook: what IPython would show is kept."""
    made = Shown()
    display = types.ModuleType("IPython.display")
    display.HTML = lambda text: text  # type: ignore[attr-defined]

    def show(page: str, display_id: bool) -> Shown:
        assert display_id
        made.pages.append(page)
        return made

    display.display = show  # type: ignore[attr-defined]
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return made


def test_a_notebook_shows_the_job_while_it_is_watched_and_when_it_has_ended(shown: Shown):
    run, _ = run_of(view(phase="Pending"), view(phase="Pending"), view(**DONE))
    run.watch(timeout=60)
    assert "mnist</b>: Pending" in shown.pages[0] and "mnist</b>: Completed" in shown.pages[-1]
    assert len(shown.pages) == 2, "not at every look"


def test_the_page_is_drawn_again_after_an_interval(shown: Shown, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr("paddlejob.client.notebook.time.monotonic", lambda: now[0])
    run, _ = run_of(view(phase="Running"))
    update = notebook.live_page(run)
    now[0] += notebook.INTERVAL - 0.1
    update(False)
    assert len(shown.pages) == 1
    now[0] += 0.2
    update(False)
    update(False)
    assert len(shown.pages) == 2
    update(True)
    assert len(shown.pages) == 3


def test_outside_of_a_notebook_nothing_is_shown(monkeypatch: pytest.MonkeyPatch):
    run, _ = run_of(view(**DONE))
    plain = types.ModuleType("IPython")
    plain.get_ipython = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", plain)
    assert notebook.live_page(run)(True) is None  # type: ignore[func-returns-value]
    monkeypatch.delitem(sys.modules, "IPython")
    assert run.watch().phase == "Completed"
    assert repr(run) == "<Run team/mnist>"
    assert "mnist completed" in run.why()
