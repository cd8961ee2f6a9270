"""A job in a queue of Kueue has no pod unless its Workload is admitted.

If it is evicted, its pods are deleted and only then its quota is given back, so what Kueue admits next finds free
nodes. A Workload that no longer describes the job is replaced once the pods are gone.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason, is_routine
from paddlejob.api.types import Phase
from paddlejob.plan import names
from paddlejob.plan.actions import Action, Create, Delete, Kind, Plan, RecordEvent, UpdateWorkload
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.finish import leave_gang
from paddlejob.plan.manifests.workload import workload_manifest
from paddlejob.plan.policies.queue import messages
from paddlejob.plan.quota import describes
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.rebuild import delete_pods, pause
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.workload import EVICTED, FINISHED, PODS_READY, QUOTA_RESERVED, REQUEUED, Condition, Workload

LOOK_AGAIN = 30.0
"""Seconds: nothing announces that Kueue was installed, or that a class or a flavor can be read."""
REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")
"""Kueue itself decides when a Workload that was evicted for another reason is queued again."""


def wait_for_quota(s: Snapshot) -> Plan | None:
    queueing = s.world.queueing
    if queueing is None or not s.held:
        return _wait_for_flavors(s)
    if not queueing.version:
        return _hold(s, messages.kueue_missing(s), wake_at=s.now + LOOK_AGAIN)
    workload = queueing.workload
    if workload is None:
        return _enqueue(s)
    return _hold(s, messages.why_held(s, workload), *([] if s.world.pods else _without_pods(s, workload)))


def _wait_for_flavors(s: Snapshot) -> Plan | None:
    """Without the flavor it is not known on which nodes the quota of the job is."""
    queueing = s.world.queueing
    if queueing is None or not queueing.error or not s.status.queue or not s.missing or s.status.finished:
        return None
    status = reported(s, s.waiting_phase, Cause(Reason.FLAVOR_UNREADABLE, queueing.error))
    return Plan(status, (), s.now + LOOK_AGAIN)


def _enqueue(s: Snapshot) -> Plan:
    """Create the Workload, once no pod is left that has no quota."""
    assert s.world.queueing is not None
    if s.world.pods:
        return _hold(s, messages.workload_deleted(s))
    if s.world.queueing.error:
        cause = Cause(Reason.PRIORITY_CLASS_UNREADABLE, s.world.queueing.error)
        return _hold(s, cause, wake_at=s.now + LOOK_AGAIN)
    name = names.workload(s.job)
    rejection = s.world.rejection_of(name)
    cause = rejections.describe(rejection) if rejection else Cause(Reason.QUEUED, messages.waiting(s))
    manifest = workload_manifest(s.job, s.world.queueing.version, s.world.queueing.priority)
    return _hold(s, cause, Create(Kind.WORKLOAD, name, manifest))


def _without_pods(s: Snapshot, workload: Workload) -> list[Action]:
    """What is due once no pod of the job is left."""
    if workload.deleting:
        return []
    if workload.is_true(FINISHED) or workload.may_run or not describes(workload, s.job):
        return [Delete(Kind.WORKLOAD, workload.name, workload.uid, "it does not describe the job")]
    if workload.is_true(EVICTED) and workload.has_quota:
        return [_release(workload)]
    return []


def _release(workload: Workload) -> UpdateWorkload:
    """Give the quota back, in the way of Kueue's own integrations."""
    why = workload.conditions[EVICTED]
    conditions = (
        Condition(QUOTA_RESERVED, False, "Pending", why.message),
        Condition("Admitted", False, "NoReservation", "The workload has no reservation"),
        Condition(REQUEUED, why.reason in REQUEUED_AT_ONCE, why.reason, why.message),
        Condition(PODS_READY, False, "WaitForStart", "Not all pods are ready or succeeded"),
    )
    return UpdateWorkload(workload, conditions, reclaimable={}, release=True)


def _hold(s: Snapshot, cause: Cause, *actions: Action, wake_at: float | None = None) -> Plan:
    """Wait without pods. A job that was started is suspended until it is admitted again."""
    known = s.status.reason == cause.reason
    events = () if known else (RecordEvent(cause.reason, cause.message, warning=not is_routine(cause.reason)),)
    if s.status.attempt == 0 and not s.world.pods:
        status = reported(s, Phase.PENDING, cause)
    elif s.status.phase is Phase.SUSPENDED:
        status = reported(s, Phase.SUSPENDED, cause)
    else:
        status = reported(s, Phase.SUSPENDED, cause, **pause(s))
    deletes = delete_pods(s, "the job has no quota")
    return Plan(status, (*deletes, *leave_gang(s), *actions, *events), wake_at)
