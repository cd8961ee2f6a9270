"""Restarting the job as a whole: a new attempt, recorded before anything of the old one is destroyed."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import times
from paddlejob.plan.actions import Action, Delete, Kind, Plan, RecordEvent
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot

FIRST_DELAY = 2.0
LONGEST_DELAY = 300.0
LASTED_WELL = 600.0
"""An attempt that ran this many seconds does not belong to a series of failures."""


def rebuild(s: Snapshot, cause: Cause, *, because: str, delay: float, **counters: int) -> Plan:
    """Raise the attempt and delete the pods; new ones are created once these are gone and the delay is over."""
    worker = s.status.role(Role.WORKER).model_copy(update={"finished": ""})
    begins = s.now + delay
    status = reported(
        s,
        Phase.RESTARTING,
        cause.reason,
        cause.message,
        attempt=s.status.attempt + 1,
        nextRestartTime=times.format(begins + 0.999) if delay else "",
        replacements="",
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
    return times.exponential_delay(count, FIRST_DELAY, LONGEST_DELAY)
