"""While live workers train: pods that were replaced or removed are deleted, and those that join are created."""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.types import Phase, Status
from paddlejob.plan import names, times
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.policies.live.losses import Loss, due
from paddlejob.plan.policies.startup.gang import wait_for_gang
from paddlejob.plan.policies.startup.missing_pods import create_pods, missing_services
from paddlejob.plan.policies.startup.stale_pods import clear_stale
from paddlejob.plan.policies.startup.startup_deadline import starts_until
from paddlejob.plan.policies.training import watch_training
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def keep_joining(s: Snapshot, waiting: list[Loss]) -> Plan:
    """`waiting` are workers that failed and are not replaced yet."""
    if gang := wait_for_gang(s):
        return replace(gang, status=_reported(s, gang.status.reason, gang.status.message))
    cleared, training = clear_stale(s), watch_training(s)
    taken = {(pod.role, pod.index) for pod in s.world.pods}
    free = [slot for slot in s.missing if slot not in taken]
    actions = (*(cleared.actions if cleared else ()), *training.actions)
    if free:
        actions = (*actions, *missing_services(s), *create_pods(s, free, s.status.attempt))
    moments = [training.wake_at, cleared.wake_at if cleared else None, *(due(s, loss) for loss in waiting)]
    wake_at = times.earliest(*moments, *(starts_until(s, pod) for pod in s.current.values()))
    return Plan(_status(s, waiting, cleared or training), actions, wake_at)


def _status(s: Snapshot, waiting: list[Loss], otherwise: Plan) -> Status:
    newest = rejections.newest(s.world.rejections) if s.missing else None
    if newest:
        return _reported(s, *rejections.describe(newest))
    if waiting:
        headline, newline, output = waiting[0].cause.message.partition("\n")
        begins = times.format(due(s, waiting[0]))
        message = f"{headline}; its pod is replaced at {begins}, the other workers keep training{newline}{output}"
        return _reported(s, waiting[0].cause.reason, message)
    if s.missing and otherwise.status.reason == "Running":
        first = names.pod(s.job, *s.missing[0])
        return _reported(s, "WorkerJoining", f"creating pod {first}; the other workers keep training")
    return otherwise.status


def _reported(s: Snapshot, reason: str, message: str) -> Status:
    """Whatever happens to one worker, the job still runs if it did."""
    return reported(s, s.status.phase or Phase.STARTING, reason, message)
