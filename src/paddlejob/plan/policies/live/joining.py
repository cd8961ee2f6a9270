"""While live workers train: pods that were replaced or removed are deleted, and those that join are created."""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase, Status
from paddlejob.plan import names, times
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.policies.live.losses import Loss, due
from paddlejob.plan.policies.startup.gang import wait_for_gang
from paddlejob.plan.policies.startup.missing_pods import create_pods, free_slots, missing_services
from paddlejob.plan.policies.startup.stale_pods import delete_stale
from paddlejob.plan.policies.startup.startup_deadline import starts_until
from paddlejob.plan.policies.training import watch_training
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def keep_joining(s: Snapshot, waiting: list[Loss]) -> Plan:
    """`waiting` are workers that failed and are not replaced yet."""
    if gang := wait_for_gang(s):
        return replace(gang, status=_reported(s, Cause(gang.status.reason, gang.status.message)))
    cleared, training, free = delete_stale(s), watch_training(s), free_slots(s)
    actions = (*(cleared.actions if cleared else ()), *training.actions)
    if free:
        actions = (*actions, *missing_services(s), *create_pods(s, free, s.status.attempt))
    moments = [training.wake_at, cleared.wake_at if cleared else None, *(due(s, loss) for loss in waiting)]
    deadlines = [starts_until(s, pod) for pod in s.current.values()]
    wake_at = times.earliest(*moments, *(moment for moment in deadlines if moment is not None and moment > s.now))
    return Plan(_status(s, waiting, cleared or training), actions, wake_at)


def _status(s: Snapshot, waiting: list[Loss], otherwise: Plan) -> Status:
    newest = rejections.newest(rejections.of_creates(s.world)) if s.missing else None
    if newest:
        return _reported(s, rejections.describe(newest))
    if waiting:
        replaced = f"its pod is replaced at {times.format(due(s, waiting[0]))}, the other workers keep training"
        return _reported(s, waiting[0].cause.adding(replaced))
    if s.missing and otherwise.status.reason == Reason.RUNNING:
        fact = f"creating pod {names.pod(s.job, *s.missing[0])}"
        return _reported(s, Cause(Reason.WORKER_JOINING, fact, "the other workers keep training"))
    return otherwise.status


def _reported(s: Snapshot, cause: Cause) -> Status:
    """Whatever happens to one worker, the job still runs if it did."""
    return reported(s, s.status.phase or Phase.STARTING, cause)
