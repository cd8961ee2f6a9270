"""Reports to Kueue, whichever policy decided: that the pods run, how many of them ended, and that the job ended."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role, Status
from paddlejob.plan.actions import Action, Delete, Kind, Plan, UpdateWorkload
from paddlejob.plan.quota import queue_of
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.workload import FINISHED, PODS_READY, Condition, Workload

MESSAGE_LIMIT = 1000


def keep_workload(s: Snapshot, decided: Plan) -> list[Action]:
    workload = s.world.queueing.workload if s.world.queueing else None
    if workload is None or workload.deleting:
        return []
    if decided.status.finished:
        return _finish(s, workload, decided.status)
    if not queue_of(s.job):
        return [Delete(Kind.WORKLOAD, workload.name, workload.uid, "the job is in no queue any more")]
    if s.job.spec.suspend:
        gone = not s.world.pods
        return [Delete(Kind.WORKLOAD, workload.name, workload.uid, "the job is suspended")] if gone else []
    return [] if s.held else _report(s, workload, decided.status)


def _finish(s: Snapshot, workload: Workload, status: Status) -> list[Action]:
    """A job gives its quota back when its last pod has ended."""
    if workload.is_true(FINISHED) or any(not pod.ended or pod.lingers for pod in s.world.pods):
        return []
    reason = "Succeeded" if status.phase is Phase.COMPLETED else "Failed"
    return [UpdateWorkload(workload, (Condition(FINISHED, True, reason, status.message[:MESSAGE_LIMIT]),))]


def _report(s: Snapshot, workload: Workload, status: Status) -> list[Action]:
    ready = _pods_ready(workload, running=status.phase is Phase.RUNNING)
    changed = ready is not None and ready != workload.conditions.get(PODS_READY)
    done = {Role.WORKER.value: count} if (count := len(s.succeeded_workers - _using_quota(s))) else {}
    reclaimed = done if _has_grown(done, workload) and status.attempt == s.status.attempt else None
    if not changed and reclaimed is None:
        return []
    return [UpdateWorkload(workload, (ready,) if ready and changed else (), reclaimed)]


def _using_quota(s: Snapshot) -> set[int]:
    """Workers that have succeeded and whose sidecars still run."""
    return {pod.index for (role, _), pod in s.current.items() if role is Role.WORKER and pod.has_sidecars_left}


def _pods_ready(workload: Workload, *, running: bool) -> Condition | None:
    """The reasons are those of Kueue's own integrations; None as long as there is nothing to say."""
    before = workload.conditions.get(PODS_READY)
    recovers = before is not None and before.reason in ("WaitForRecovery", "Recovered")
    if running:
        reason = "Recovered" if recovers else "Started"
        return Condition(PODS_READY, True, reason, "All pods reached readiness and the workload is running")
    if before is None or not before.true:
        return before
    return Condition(PODS_READY, False, "WaitForRecovery", "The pods are being rebuilt")


def _has_grown(done: dict[str, int], workload: Workload) -> bool:
    return any(count > workload.reclaimable.get(role, 0) for role, count in done.items())
