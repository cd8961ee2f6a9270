"""Why a job in a queue does not run."""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.plan import names
from paddlejob.plan.cause import Cause
from paddlejob.plan.quota import describes, queue_of
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.workload import ADMITTED, EVICTED, QUOTA_RESERVED, Workload

NEVER_ADMITTED = ("Inadmissible", "Misconfigured", "NoMatchingFlavor", "ExceedsMaxQuota", "Suspended")
"""Reasons of Kueue for which a job waits until the queue or the job is changed."""


def kueue_missing(s: Snapshot) -> Cause:
    fact = (
        f"the job is in queue {queue_of(s.job)}, but Kueue is not installed in this cluster, or the operator lacks "
        "permission for its Workloads"
    )
    remedy = (
        "install Kueue, install the operator's role again, or remove the label kueue.x-k8s.io/queue-name from the job"
    )
    return Cause(Reason.KUEUE_MISSING, fact, remedy)


def waiting(s: Snapshot) -> str:
    return f"waiting for quota in queue {queue_of(s.job)}"


def workload_deleted(s: Snapshot) -> Cause:
    fact = "the Workload of the job was deleted, so it has no quota"
    return Cause(Reason.WORKLOAD_DELETED, fact, _again(s))


def why_held(s: Snapshot, workload: Workload) -> Cause:
    if not describes(workload, s.job) or workload.deleting:
        return Cause(Reason.REQUEUED, "the job or its queue was changed", _again(s))
    if not workload.active:
        return _deactivated(s, workload)
    if workload.may_run:
        fact = "workers that had finished gave their quota back and have to train again"
        return Cause(Reason.REQUEUED, fact, f"waiting in queue {queue_of(s.job)}")
    if workload.is_true(EVICTED) and workload.has_quota:
        return _evicted(s, workload)
    return _waiting(s, workload)


def _again(s: Snapshot) -> str:
    return f"waiting in queue {queue_of(s.job)} again"


def _deactivated(s: Snapshot, workload: Workload) -> Cause:
    evicted = workload.conditions.get(EVICTED)
    why = f": {evicted.message}" if evicted and evicted.message else ""
    namespace = names.namespace_flag(s.job.namespace)
    command = f"""kubectl patch workload {workload.name}{namespace} --type=merge -p '{{"spec":{{"active":true}}}}'"""
    fact = "Kueue or a user deactivated the Workload of the job"
    return Cause(Reason.DEACTIVATED, fact, f"run `{command}` to queue it again{why}")


def _evicted(s: Snapshot, workload: Workload) -> Cause:
    found, queue = workload.conditions[EVICTED], queue_of(s.job)
    if found.reason == "Preempted":
        remedy = f"training continues when queue {queue} has some: {found.message}"
        return Cause(Reason.PREEMPTED, "another job took the quota", remedy)
    remedy = f"it waits in queue {queue}: {found.message}"
    return Cause(Reason.EVICTED, f"Kueue stopped the job ({found.reason})", remedy)


def _waiting(s: Snapshot, workload: Workload) -> Cause:
    queue, reserved = queue_of(s.job), workload.conditions.get(QUOTA_RESERVED)
    if workload.has_quota:
        found = workload.conditions.get(ADMITTED)
        why = "; ".join(workload.checks) or (found.message if found else "")
        fact = f"queue {queue} has quota for the job"
        return Cause(Reason.WAITING_FOR_ADMISSION_CHECKS, fact, f"its admission checks are not done: {why}")
    if reserved is None or not reserved.message:
        return Cause(Reason.WAITING_FOR_QUOTA, waiting(s))
    if reserved.reason in NEVER_ADMITTED:
        remedy = f"correct the queue or the job: {reserved.message}"
        return Cause(Reason.INADMISSIBLE, f"queue {queue} cannot admit the job", remedy)
    return Cause(Reason.WAITING_FOR_QUOTA, f"{waiting(s)}: {reserved.message}")
