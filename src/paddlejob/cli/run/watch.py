"""Watching jobs until they are inactive: a live view on a terminal, plain lines elsewhere, then a summary."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

from paddlejob.cli.run.observation import Observe, observer
from paddlejob.cli.run.screen import LastingScreen, Screen
from paddlejob.cli.run.signals import Signals
from paddlejob.cli.run.summary import summarize
from paddlejob.engine.backend import Key
from paddlejob.errors import JobFailed
from paddlejob.local.runner import AttachedRunner
from paddlejob.local.state.store import JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.views import JobView

PAUSE = 0.1


def watch(store: JobStore, keys: list[Key], runner: AttachedRunner, signals: Signals) -> int:
    """Show progress until the runner has ended; returns the exit status."""
    target = LocalTarget(store)
    screen = LastingScreen(open_screen(observer(target)))
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
    return [replace(view, qualified=is_shared(key, keys)) for key, view in found if view]


def is_shared(key: Key, keys: list[Key]) -> bool:
    """Whether another of the jobs has the same name, in another namespace."""
    return any(other[1] == key[1] and other != key for other in keys)


def open_screen(observe: Observe, footer: str = "") -> Screen:
    """The live view on a terminal, lines elsewhere."""
    if sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from paddlejob.cli.run.live import LiveScreen

        return LiveScreen(observe, footer)
    from paddlejob.cli.run.plain import PlainScreen

    return PlainScreen()


def _finish(views: list[JobView], keys: list[Key], signals: Signals) -> int:
    """Print a summary of every job; raises JobFailed if one did not complete, unless a signal ended the command."""
    deleted = set(keys) - {(view.job.namespace, view.job.name) for view in views}
    titles = sorted("/".join(key) if is_shared(key, keys) else key[1] for key in deleted)
    failures = [f"{title} was deleted while it ran" for title in titles]
    failures += [failure for view in views if (failure := summarize(view))]
    sys.stdout.flush()
    if signals.count:
        print("\n".join(f"pdj: {failure}" for failure in failures), file=sys.stderr)
        return signals.exit_code
    if failures:
        raise JobFailed("\n".join(failures))
    return 0
