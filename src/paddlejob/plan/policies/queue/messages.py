"""Why a job in a queue does not run: the reason, and a message that starts with the fact and what to do about it."""

from __future__ import annotations

from paddlejob.plan import names
from paddlejob.plan.diagnosis.reasons import Reason
from paddlejob.plan.quota import describes, queue_of
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.workload import ADMITTED, EVICTED, QUOTA_RESERVED, Workload

ROUTINE = ("Queued", "WaitingForQuota", "WaitingForAdmissionChecks")
UNANNOUNCED = ("KueueMissing", "PriorityClassUnreadable")
MISCONFIGURED = ("Inadmissible", "Misconfigured")


def kueue_missing(s: Snapshot) -> str:
    return (
        f"the job is in queue {queue_of(s.job)}, but Kueue is not installed in this cluster; install Kueue, or remove "
        "the label kueue.x-k8s.io/queue-name from the job"
    )


def enqueued(s: Snapshot) -> str:
    return f"waiting for quota in queue {queue_of(s.job)}"


def workload_deleted(s: Snapshot) -> str:
    return f"the Workload of the job was deleted, so it has no quota; waiting in queue {queue_of(s.job)} again"


def why_held(s: Snapshot, workload: Workload) -> Reason:
    if not describes(workload, s.job) or workload.deleting:
        return "Requeued", f"the job or its queue was changed; waiting in queue {queue_of(s.job)} again"
    if not workload.active:
        return "Deactivated", _deactivated(s, workload)
    if workload.may_run:
        return "Requeued", (
            "workers that had finished gave their quota back and have to train again; "
            f"waiting in queue {queue_of(s.job)}"
        )
    if workload.is_true(EVICTED):
        return _evicted(s, workload)
    return _waiting(s, workload)


def _deactivated(s: Snapshot, workload: Workload) -> str:
    evicted = workload.conditions.get(EVICTED)
    why = f": {evicted.message}" if evicted and evicted.message else ""
    namespace = names.namespace_flag(s.job.namespace)
    command = f"""kubectl patch workload {workload.name}{namespace} --type=merge -p '{{"spec":{{"active":true}}}}'"""
    return f"Kueue or a user deactivated the Workload of the job; run `{command}` to queue it again{why}"


def _evicted(s: Snapshot, workload: Workload) -> Reason:
    found = workload.conditions[EVICTED]
    queue = queue_of(s.job)
    if found.reason == "Preempted":
        return (
            "Preempted",
            f"another job took the quota; training continues when queue {queue} has some: {found.message}",
        )
    return "Evicted", f"Kueue stopped the job ({found.reason}); it waits in queue {queue}: {found.message}"


def _waiting(s: Snapshot, workload: Workload) -> Reason:
    queue, reserved = queue_of(s.job), workload.conditions.get(QUOTA_RESERVED)
    if workload.has_quota:
        found = workload.conditions.get(ADMITTED)
        why = "; ".join(workload.checks) or (found.message if found else "")
        return (
            "WaitingForAdmissionChecks",
            f"queue {queue} has quota for the job; its admission checks are not done: {why}",
        )
    if reserved is None or not reserved.message:
        return "WaitingForQuota", f"waiting for quota in queue {queue}"
    if reserved.reason in MISCONFIGURED:
        return "Inadmissible", f"queue {queue} cannot admit the job; correct the queue or its name: {reserved.message}"
    return "WaitingForQuota", f"waiting for quota in queue {queue}: {reserved.message}"
