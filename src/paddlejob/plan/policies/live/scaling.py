"""Live workers are added and removed by spec.worker.replicas, without a rebuild.

The record of both is written before a pod is created or deleted. The number of a removed worker rises, so that its pod
is not taken for that of a worker which is added again while the old pod still ends.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase, Role, Slot
from paddlejob.plan.actions import Delete, Kind, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.report import reported
from paddlejob.plan.restarts import replacement_counts
from paddlejob.plan.snapshot import Snapshot


def scale_live(s: Snapshot) -> Plan | None:
    before, wanted = s.workers_built, s.job.spec.roles[Role.WORKER].replicas
    if before in (0, wanted):
        return None
    added: list[Slot] = [(Role.WORKER, index) for index in range(before, wanted) if index not in s.succeeded_workers]
    removed = [s.current[slot] for index in range(wanted, before) if (slot := (Role.WORKER, index)) in s.current]
    counts = {slot: s.replaced.get(slot, 0) for slot in added} | s.replaced
    counts |= {(pod.role, pod.index): pod.replacement + 1 for pod in removed}
    joining = {slot for slot in s.joining if slot in s.slots} | set(added)
    reason, verb = (Reason.WORKERS_ADDED, "join") if wanted > before else (Reason.WORKERS_REMOVED, "leave")
    message = f"scaled from {before} to {wanted} workers: {abs(wanted - before)} to {verb}, the others keep training"
    formatted = replacement_counts.format(counts, joining)
    status = reported(s, s.status.phase or Phase.STARTING, Cause(reason, message), replacements=formatted)
    deletes = [Delete(Kind.POD, pod.name, pod.uid, "its replica is no longer wanted") for pod in removed]
    return Plan(status, (*deletes, RecordEvent(reason, message)), s.now)
