"""What can be done with a job from its page. Each action is a command of `pdj`, and is shown as such."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from paddlejob.targets.views import JobView


@dataclass(frozen=True)
class Command:
    action: str
    text: str
    """The command as a user would type it; WORKERS stands for a number that the page asks for."""


def commands(view: JobView, *, resizable: bool, read_only: bool) -> list[Command]:
    """The actions that make sense now."""
    if read_only or view.phase == "Deleting":
        return []
    job, status = f"{shlex.quote(view.job.name)}{view.flags}", view.job.status
    found = []
    if not status.finished and not view.damaged:
        # A job that lost its quota is suspended too, but not by its user.
        stopped = view.phase == "Interrupted" or (view.phase == "Suspended" and view.job.spec.suspend)
        verb = "resume" if stopped else "suspend"
        found.append(Command(verb, f"pdj {verb} {job}"))
        if resizable:
            found.append(Command("scale", f"pdj scale {shlex.quote(view.job.name)} WORKERS{view.flags}"))
    if status.finished and not view.damaged:
        found.append(Command("rerun", f"pdj rerun {job}"))
    return [*found, Command("delete", f"pdj delete {job}")]
