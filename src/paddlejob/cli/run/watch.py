"""Watching jobs until they are inactive: a live view on a terminal, plain lines elsewhere, then a summary."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Protocol

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.cli.output.humanize import restarts, run_time
from paddlejob.cli.output.log_tail import last_lines
from paddlejob.cli.output.progress import position, progress_line
from paddlejob.cli.run.signals import Signals
from paddlejob.cli.targets.local import LocalTarget
from paddlejob.cli.targets.target import JobView
from paddlejob.engine.backend import Key
from paddlejob.errors import JobFailed
from paddlejob.local.runner import AttachedRunner
from paddlejob.local.state.store import Store
from paddlejob.progress import Parser

PAUSE = 0.1
LOG_LINES = 3


class Screen(Protocol):
    def show(self, views: list[JobView]) -> None: ...

    def say(self, message: str) -> None: ...

    def close(self) -> None: ...


def watch(store: Store, keys: list[Key], runner: AttachedRunner, signals: Signals) -> int:
    """Show progress until the runner has ended; returns the exit status."""
    screen = _screen()
    target = LocalTarget(store)
    handled = 0
    try:
        alive = True
        while alive:
            alive = runner.alive
            screen.show(_views(target, keys))
            if signals.count > handled:
                handled = signals.count
                _stop(runner, screen, handled)
            if alive:
                time.sleep(PAUSE)
    finally:
        screen.close()
    return _finish(_views(target, keys), keys, signals)


def _stop(runner: AttachedRunner, screen: Screen, signal_count: int) -> None:
    if signal_count == 1:
        screen.say("Stopping; press Ctrl-C again to kill now.")
        runner.interrupt()
    else:
        runner.kill()


def _views(target: LocalTarget, keys: list[Key]) -> list[JobView]:
    views = (target.find(key) for key in keys)
    return [view for view in views if view]


def _screen() -> Screen:
    if sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from paddlejob.cli.run.live import LiveScreen

        return LiveScreen()
    from paddlejob.cli.run.plain import PlainScreen

    return PlainScreen()


def _finish(views: list[JobView], keys: list[Key], signals: Signals) -> int:
    """Print a summary of every job; raises JobFailed if one did not complete, unless a signal ended the command."""
    deleted = {key[1] for key in keys} - {view.job.name for view in views}
    failures = [f"{name} was deleted while it ran" for name in sorted(deleted)]
    failures += [failure for view in views if (failure := _summarize(view))]
    sys.stdout.flush()
    if signals.count:
        print("\n".join(f"pdj: {failure}" for failure in failures), file=sys.stderr)
        return signals.exit_code
    if failures:
        raise JobFailed("\n".join(failures))
    return 0


def _result(job: PaddleJob, log: Path) -> list[str]:
    """How far training came, and the last lines of the log that tell something else."""
    lines = last_lines(log, LOG_LINES, without_noise=True)
    progress = progress_line(job)
    if not progress:
        return lines
    parser = Parser(job.spec.progress)
    samples = ((line, parser.parse(line)) for line in lines)
    return [progress, *(line for line, sample in samples if not sample or not sample.has_position)]


def _summarize(view: JobView) -> str:
    """Print how the job ended; returns why it did not complete, or an empty string."""
    job = view.job
    if job.status.phase is Phase.COMPLETED:
        worker = next((pod for pod in view.pods if pod.role == "worker"), None)
        log = Path(worker.log) if worker else Path()
        print(f"{job.name} completed in {run_time(job)}{restarts(job)}; logs: {log.parent}")
        print("".join(f"  {line}\n" for line in _result(job, log)), end="")
        return ""
    if job.status.phase is Phase.FAILED:
        reached = f" at {position(job)}" if position(job) else ""
        print(f"{job.name} failed after {run_time(job)}{reached}{restarts(job)}; for details run `pdj why {job.name}`")
        return f"{job.name} failed: {job.status.reason}: {job.status.message}"
    if job.status.phase is Phase.SUSPENDED:
        return f"{job.name} is suspended; run `pdj resume {job.name}` to continue"
    return f"{job.name}: {view.note or view.phase}"
