"""Watching jobs that something else runs: this command may stop watching at any time, and the jobs go on."""

from __future__ import annotations

import sys
from dataclasses import replace

from paddlejob.cli.run.keyboard import Keyboard
from paddlejob.cli.run.summary import summarize
from paddlejob.cli.run.watch import Screen, is_shared, open_screen
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.local import LocalTarget
from paddlejob.client.targets.target import JobView, Target, has_ended
from paddlejob.client.watch.observation import Observer
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, JobFailed, Overloaded, Unreachable

PAUSE, CLUSTER_PAUSE = 0.2, 1.0
INTERRUPTED = 130
QUIT = ("q", "Q")


def watch_jobs(target: Target, keys: list[Key]) -> int:
    """Show jobs until all of them have ended; raises JobFailed if one failed."""
    views = [replace(target.job(*key), qualified=is_shared(key, keys)) for key in keys]
    pause = CLUSTER_PAUSE if isinstance(target, ClusterTarget) else PAUSE
    screen = open_screen(observer(target), footer="Press q to stop watching; the training goes on.")
    try:
        with Keyboard() as keyboard:
            screen.show(views)
            while not all(map(has_ended, views)):
                if keyboard.wait(pause) in QUIT:
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


def observer(target: Target) -> Observer:
    if isinstance(target, LocalTarget):
        from paddlejob.client.watch.machine import MachineObserver

        return MachineObserver(target.store)
    assert isinstance(target, ClusterTarget)
    from paddlejob.client.watch.cluster import ClusterObserver

    return ClusterObserver(target)


def look_again(target: Target, views: list[JobView], screen: Screen) -> list[JobView]:
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
