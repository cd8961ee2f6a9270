"""Restarting the job as a whole: a new attempt, recorded before anything of the old one is destroyed."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import times
from paddlejob.plan.actions import Action, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.report import reported
from paddlejob.plan.restarts import backoff, in_place
from paddlejob.plan.restarts.backoff import Delay
from paddlejob.plan.restarts.shutdown import delete_pod, nothing_to_save, short_grace
from paddlejob.plan.snapshot import Snapshot


def restart(s: Snapshot, cause: Cause, delay: Delay, *, because: str, **changes: object) -> Plan:
    """Rebuild after a failure or a disruption; the delay depends on the progress that was made."""
    changes = {"restartsWithoutProgress": delay.series, **changes}
    if s.job.spec.wants_agents and not s.world.one_machine:
        if not (why := in_place.obstacle(s, delay, changes)):
            updates = {**next_attempt(s), **changes}
            return in_place.begin(s, cause, updates, s.now + delay.seconds, quick=nothing_to_save(s))
        cause = cause.adding(f"with new pods, because {why}")
    return rebuild(s, cause, because=because, delay=delay.seconds, quick=nothing_to_save(s), **changes)


def rebuild(s: Snapshot, cause: Cause, *, because: str, delay: float, quick: bool = False, **changes: object) -> Plan:
    """Raise the attempt and delete the pods; new ones are created once these are gone and the delay is over.

    `quick`: the pods have nothing to save, so they get little time to shut down.
    """
    begins = s.now + delay
    updates = {**next_attempt(s), "nextRestartTime": times.format_exact(begins) if delay else "", **changes}
    status = reported(s, Phase.RESTARTING, cause, **updates)
    deletes = delete_pods(s, because, quick=quick)
    return Plan(status, (*deletes, RecordEvent(cause.reason, cause.message, warning=True)), begins)


def next_attempt(s: Snapshot) -> dict[str, object]:
    """What changes in the status when an attempt ends, for whatever reason."""
    return {
        "attempt": s.status.attempt + 1,
        "builtAttempt": 0,
        "nextRestartTime": "",
        "replacements": "",
        "earlyError": "",
        "worker": s.status.role(Role.WORKER).model_copy(update={"finished": "", "ranks": ""}),
        "failuresWithoutProgress": 0 if backoff.gained_steps(s) else s.status.failuresWithoutProgress,
    }


def pause(s: Snapshot) -> dict[str, object]:
    """What changes in the status when a job stops for a while, which is not counted as a restart."""
    return {
        **next_attempt(s),
        # A job without a status may have pods already.
        "attempt": max(s.status.attempt, *(pod.attempt for pod in s.world.pods), 0) + 1,
        "startTime": "",
        "worker": s.status.role(Role.WORKER).model_copy(update={"finished": "", "members": "", "ranks": ""}),
    }


def delete_pods(s: Snapshot, because: str, *, quick: bool = False) -> list[Action]:
    return [
        delete_pod(s, pod, because, short_grace(s.job, pod) if quick else None)
        for pod in s.world.pods
        if not pod.deleting
    ]
