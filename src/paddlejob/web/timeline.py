"""The attempts of a job: when each ran, and why it ended. Events say it, as long as they are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from paddlejob.cli.targets.target import EventView, JobView
from paddlejob.web.rows import moment

ENDS = {
    "ProgramFailed", "OutOfMemory", "ServerExited", "UsageExceeded", "CommandNotFound", "StartError", "Stalled",
    "SpecChanged", "ScaledUp", "ScaledDown", "HalfCreated", "HalfPlaced", "EnvironmentTaken", "Evicted", "PodDeleted",
    "PodLost", "StartupDeadlineExceeded", "Suspended", "Preempted", "WorkloadDeleted",
}  # fmt: skip
"""Reasons of events that end an attempt; others do if their message says that the job restarts."""
RESTARTS = re.compile(r"\brestart \d+\b|\brebuilding\b|\brestarting\b")
ALONE = {"WorkerReplaced", "WorkerAdded", "WorkerRemoved"}


@dataclass(frozen=True)
class Attempt:
    number: int
    start: float | None
    end: float | None
    reason: str = ""
    message: str = ""
    warning: bool = False


def timeline(view: JobView) -> list[Attempt]:
    """The attempts that are known, oldest first; the last is the current one."""
    status = view.job.status
    if not status.attempt:
        return []
    ends = (
        [event for event in view.events if _ends_attempt(event)][-(status.attempt - 1) :] if status.attempt > 1 else []
    )
    first = status.attempt - len(ends)
    start = moment(status.startTime) if first == 1 else None
    begun = moment(view.job.metadata.creationTimestamp) if first == 1 else None
    attempts = []
    previous = begun or start
    for number, event in enumerate(ends, first):
        end = moment(event.time)
        attempts.append(Attempt(number, previous, end, event.reason, _first_line(event.message), event.warning))
        previous = end
    return [*attempts, _current(view, previous, ends)]


def _current(view: JobView, start: float | None, ends: Sequence[EventView]) -> Attempt:
    status = view.job.status
    running = status.condition("Running")
    waits = ends and ends[-1].reason == "Suspended" and running and running.status == "True"
    start = moment(running.lastTransitionTime) if waits and running else start
    over = status.finished or view.phase == "Interrupted"
    reason = str(status.phase or "") if over else status.reason
    end = moment(status.completionTime) if status.finished else None
    return Attempt(status.attempt, start, end, reason, view.headline, warning=view.phase in ("Failed", "Interrupted"))


def _ends_attempt(event: EventView) -> bool:
    if event.reason in ALONE:
        return False
    return event.reason in ENDS or bool(RESTARTS.search(_first_line(event.message)))


def _first_line(message: str) -> str:
    return message.partition("\n")[0]
