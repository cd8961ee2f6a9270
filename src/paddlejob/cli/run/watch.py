"""Watching jobs until they are inactive: a live view on a terminal, plain lines elsewhere, then a summary."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.cli.run.signals import Signals
from paddlejob.client.describe.humanize import restarts, run_time
from paddlejob.client.describe.log_tail import last_lines
from paddlejob.client.describe.progress import position, progress_line
from paddlejob.client.targets.local import LocalTarget
from paddlejob.client.targets.target import JobView
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
    found = ((key, target.find(key)) for key in keys)
    return [replace(view, qualified=_is_shared(key, keys)) for key, view in found if view]


def _is_shared(key: Key, keys: list[Key]) -> bool:
    """Whether another of the jobs has the same name, in another namespace."""
    return any(other[1] == key[1] and other != key for other in keys)


def _screen() -> Screen:
    if sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from paddlejob.cli.run.live import LiveScreen

        return LiveScreen()
    from paddlejob.cli.run.plain import PlainScreen

    return PlainScreen()


def _finish(views: list[JobView], keys: list[Key], signals: Signals) -> int:
    """Print a summary of every job; raises JobFailed if one did not complete, unless a signal ended the command."""
    deleted = set(keys) - {(view.job.namespace, view.job.name) for view in views}
    titles = sorted("/".join(key) if _is_shared(key, keys) else key[1] for key in deleted)
    failures = [f"{title} was deleted while it ran" for title in titles]
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
        print(f"{view.title} completed in {run_time(job)}{restarts(job)}; logs: {log.parent}")
        print("".join(f"  {line}\n" for line in _result(job, log)), end="")
        return ""
    if job.status.phase is Phase.FAILED:
        reached = f" at {position(job)}" if position(job) else ""
        command = f"pdj why {job.name}{view.flags}"
        print(f"{view.title} failed after {run_time(job)}{reached}{restarts(job)}; for details run `{command}`")
        return f"{view.title} failed: {job.status.reason}: {job.status.message}"
    if job.status.phase is Phase.SUSPENDED:
        return f"{view.title} is suspended; run `pdj resume {job.name}{view.flags}` to continue"
    return f"{view.title}: {view.note or view.phase}"
