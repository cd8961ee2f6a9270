"""An elastic job starts with the workers that fit, if these are at least `worker.requests`.

What does not fit 30 s after the last progress is left out of the attempt: pods that no node has room for, and pods that
a quota does not admit. It is recorded in the status before anything is deleted. The job grows again later (grow.py).
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Role, Slot
from paddlejob.plan import indexes, names, times
from paddlejob.plan.actions import Delete, Kind, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.report import reported
from paddlejob.plan.size import fewest_workers, is_resizable
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

PATIENCE = 30.0
"""Seconds; less if scheduleTimeoutSeconds is less. An autoscaler that adds nodes one by one restarts it with each."""


def shrink_to_fit(s: Snapshot) -> Plan | None:
    due = shrinks_at(s)
    if due is None or s.now < due:
        return None
    placed = {pod.index for pod in _placed_workers(s)}
    left_out = [pod for pod in s.current.values() if pod.role is Role.WORKER and pod.index not in placed]
    wanted = s.job.spec.roles[Role.WORKER].replicas
    fact = f"training starts with {len(placed)} of {wanted} workers, and grows when there is room: {_why(s)}"
    cause = Cause(Reason.SCALED_DOWN, fact)
    worker = s.status.role(Role.WORKER).model_copy(update={"members": indexes.format(placed)})
    changes = {"worker": worker, "lastResizeTime": times.format(s.now), "replacements": ""}
    status = reported(s, s.waiting_phase, cause, **changes)
    deletes = [Delete(Kind.POD, pod.name, pod.uid, "it does not fit") for pod in left_out if not pod.deleting]
    return Plan(status, (*deletes, RecordEvent(cause.reason, cause.message, warning=True)))


def shrinks_at(s: Snapshot) -> float | None:
    """When the job goes on with the workers that fit; None if all fit, too few do, or one may still fit."""
    if not is_resizable(s.job) or s.published or s.stale or len(s.members) <= fewest_workers(s.job):
        return None
    placed = _placed_workers(s)
    enough = fewest_workers(s.job) <= len(placed) < len(s.members)
    if not enough or not _others_cannot_start(s, {(pod.role, pod.index) for pod in placed}):
        return None
    last_placed = max(max(pod.scheduling_since, pod.created) for pod in placed)
    last_tried = max((pod.created for pod in s.unscheduled), default=0.0)
    return max(last_placed, last_tried) + min(PATIENCE, s.job.spec.schedule_timeout)


def _placed_workers(s: Snapshot) -> list[Pod]:
    return [
        pod
        for pod in s.current.values()
        if pod.role is Role.WORKER and pod.placed and not pod.deleting and not pod.ended
    ]


def _others_cannot_start(s: Snapshot, placed: set[Slot]) -> bool:
    """Whether every worker that has no node fits on none, or exceeds a quota; a server that lacks one is waited for."""
    hopeless = {(pod.role, pod.index) for pod in s.unscheduled if not pod.nominated}
    if any(_over_quota(s, *slot) for slot in s.missing):
        # After a rejection the others are not tried.
        hopeless |= set(s.missing)
    others = [slot for slot in s.slots if slot not in placed]
    return all(slot in hopeless if slot[0] is Role.WORKER else _is_placed(s, slot) for slot in others)


def _over_quota(s: Snapshot, role: Role, index: int) -> bool:
    rejection = s.world.rejection_of(names.pod(s.job, role, index))
    return rejection is not None and rejections.is_over_quota(rejection)


def _is_placed(s: Snapshot, slot: Slot) -> bool:
    return slot in s.current and s.current[slot].placed


def _why(s: Snapshot) -> str:
    if s.unscheduled:
        pod = s.unscheduled[0]
        return f"{pod.message} ({pod.name})"
    rejected = next(slot for slot in s.missing if _over_quota(s, *slot))
    found = s.world.rejection_of(names.pod(s.job, *rejected))
    return found.message if found else ""
