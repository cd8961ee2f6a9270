"""Restarting the job as a whole: a new attempt, recorded before anything of the old one is destroyed."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Delete, Kind, Plan, RecordEvent
from paddlejob.plan.causes import Cause
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot

FIRST_DELAY = 2.0
LONGEST_DELAY = 300.0
LASTED_WELL = 600.0
"""An attempt that ran so long was no part of a series of failures."""


def rebuild(s: Snapshot, cause: Cause, *, because: str, delay: float, **counters: int) -> Plan:
    """Bump the attempt and delete its pods; they are created anew when they are gone and the delay is over."""
    worker = s.status.role(Role.WORKER).model_copy(update={"finished": ""})
    begins = s.now + delay
    status = reported(
        s,
        Phase.RESTARTING,
        cause.reason,
        cause.message,
        attempt=s.status.attempt + 1,
        nextRestartTime=times.format(begins + 0.999) if delay else "",
        worker=worker,
        **counters,
    )
    return Plan(status, (*delete_pods(s, because), RecordEvent(cause.reason, cause.message, warning=True)), begins)


def delete_pods(s: Snapshot, because: str) -> list[Action]:
    return [Delete(Kind.POD, pod.name, pod.uid, because) for pod in s.world.pods if not pod.deleting]


def backoff(s: Snapshot, count: int) -> float:
    """Seconds before rebuild number `count`: doubling, but short again after an attempt that lasted."""
    running = s.status.condition(Phase.RUNNING)
    if running and running.status == "True" and s.now - times.parse(running.lastTransitionTime) > LASTED_WELL:
        return FIRST_DELAY
    return min(FIRST_DELAY * 2.0 ** min(count - 1, 20), LONGEST_DELAY)


def jitter(s: Snapshot, fewest: float, most: float) -> float:
    """Between the two, different for each job and attempt, so that jobs which got in each other's way part."""
    return fewest + names.spread(s.job, s.status.attempt, "jitter") % 1000 / 1000 * (most - fewest)
