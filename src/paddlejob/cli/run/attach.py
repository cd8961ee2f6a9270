"""Watching jobs that something else runs: this command may stop watching at any time, and the jobs go on."""

from __future__ import annotations

import sys
from dataclasses import replace

from paddlejob.cli.run.keyboard import Keyboard
from paddlejob.cli.run.observation import observer
from paddlejob.cli.run.screen import LastingScreen, Screen
from paddlejob.cli.run.summary import summarize
from paddlejob.cli.run.watch import is_shared, open_screen
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, JobFailed, Overloaded, Unreachable
from paddlejob.targets.sync import SyncTarget
from paddlejob.targets.views import JobView, has_ended

INTERRUPTED = 130
QUIT = ("q", "Q")


def watch_jobs(target: SyncTarget, keys: list[Key]) -> int:
    """Show jobs until all of them have ended; raises JobFailed if one failed."""
    views = [replace(target.job(*key), qualified=is_shared(key, keys)) for key in keys]
    screen = LastingScreen(open_screen(observer(target.target), "Press q to stop watching; the training goes on."))
    try:
        with Keyboard() as keyboard:
            screen.show(views)
            while not all(map(has_ended, views)):
                if keyboard.wait(target.pause) in QUIT:
                    return detach(screen, views, 0)
                views = look_again(target, views, screen)
                screen.show(views)
    except KeyboardInterrupt:
        return detach(screen, views, INTERRUPTED)
    finally:
        screen.close()
    if failures := [failure for view in views if (failure := summarize(view))]:
        sys.stdout.flush()
        raise JobFailed("\n".join(failures))
    return 0


def look_again(target: SyncTarget, views: list[JobView], screen: Screen) -> list[JobView]:
    """The jobs as they are now. Training goes on while the cluster does not answer, so that is only noted."""
    found = []
    for view in views:
        job = view.job
        try:
            found.append(replace(target.job(job.namespace, job.name), qualified=view.qualified))
        except (Unreachable, Overloaded) as error:
            note = f"{error}; trying again"
            if view.note != note:
                screen.say(f"pdj: {note}")
            found.append(replace(view, note=note))
        except BadInput:
            raise JobFailed(f"{view.title} was deleted") from None
    return found


def detach(screen: Screen, views: list[JobView], status: int) -> int:
    screen.close()
    for view in views:
        if not has_ended(view):
            job = f"{view.job.name}{view.flags}"
            print(f"{view.title} keeps training; watch it again with `pdj watch {job}`")
    return status
