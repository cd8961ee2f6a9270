"""Watching jobs until they rest: a live view on a terminal, plain lines elsewhere, and what came of it at the end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Protocol

from paddlejob.api.types import Phase
from paddlejob.cli.humanize import lasted, restarts
from paddlejob.cli.run.signals import Signals
from paddlejob.cli.tails import last_lines
from paddlejob.cli.targets.local import LocalTarget
from paddlejob.cli.targets.target import JobView
from paddlejob.engine.backend import Key
from paddlejob.errors import JobFailed
from paddlejob.local.runner import AttachedRunner
from paddlejob.local.store import Store

PAUSE = 0.1
LAST_LINES = 3


class Screen(Protocol):
    def show(self, views: list[JobView]) -> None: ...

    def say(self, words: str) -> None: ...

    def close(self) -> None: ...


def watch(store: Store, keys: list[Key], host: AttachedRunner, signals: Signals) -> int:
    """Until the host has ended. The exit status."""
    screen = _screen()
    place = LocalTarget(store)
    seen = 0
    try:
        alive = True
        while alive:
            alive = host.alive
            screen.show(_views(place, keys))
            if signals.count > seen:
                seen = signals.count
                _pass_on(host, screen, seen)
            if alive:
                time.sleep(PAUSE)
    finally:
        screen.close()
    return _sum_up(_views(place, keys), keys, signals)


def _pass_on(host: AttachedRunner, screen: Screen, times: int) -> None:
    if times == 1:
        screen.say("stopping; once more ends everything at once")
        host.interrupt()
    else:
        host.kill()


def _views(place: LocalTarget, keys: list[Key]) -> list[JobView]:
    found = (place.find(key) for key in keys)
    return [view for view in found if view]


def _screen() -> Screen:
    if sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from paddlejob.cli.run.live import LiveScreen

        return LiveScreen()
    from paddlejob.cli.run.plain import PlainScreen

    return PlainScreen()


def _sum_up(views: list[JobView], keys: list[Key], signals: Signals) -> int:
    gone = {key[1] for key in keys} - {view.job.name for view in views}
    wrong = [f"job {name} was deleted while it ran" for name in sorted(gone)]
    for view in views:
        job = view.job
        if job.status.phase is Phase.COMPLETED:
            worker = next((pod for pod in view.pods if pod.role == "worker"), None)
            log = Path(worker.log) if worker else Path()
            print(f"{job.name} completed in {lasted(job)}{restarts(job)}; its logs: {log.parent}")
            print("".join(f"  {line}\n" for line in last_lines(log, LAST_LINES)), end="")
        elif job.status.phase is Phase.FAILED:
            print(f"{job.name} failed after {lasted(job)}{restarts(job)}; `pdj why {job.name}` tells more")
            wrong.append(f"{job.name} failed: {job.status.reason}: {job.status.message}")
        elif job.status.phase is Phase.SUSPENDED:
            wrong.append(f"{job.name} is suspended; `pdj resume {job.name}` lets it go on")
        else:
            wrong.append(f"{job.name}: {view.note or view.phase}")
    sys.stdout.flush()
    if signals.count:
        print("\n".join(f"pdj: {words}" for words in wrong), file=sys.stderr)
        return signals.exit_code
    if wrong:
        raise JobFailed("\n".join(wrong))
    return 0
