"""Pods of an earlier attempt are deleted first: they have the names that the current attempt needs."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.plan.actions import Delete, Kind, Plan
from paddlejob.plan.reasons import Reason
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot

FINALIZER_PATIENCE = 60.0


def clear_stale(s: Snapshot) -> Plan | None:
    if not s.stale:
        return None
    phase = s.status.phase or Phase.PENDING
    reason, message = _held_by_finalizer(s) or (s.status.reason, s.status.message)
    deletes = [Delete(Kind.POD, pod.name, pod.uid, "of an earlier attempt") for pod in s.stale if not pod.deleting]
    return Plan(reported(s, phase, reason, message), tuple(deletes))


def _held_by_finalizer(s: Snapshot) -> Reason | None:
    """A pod that is still there long after it should have been gone, even by force, has a finalizer."""
    for pod in s.stale:
        if pod.deletion_due is not None and s.now > pod.deletion_due + FINALIZER_PATIENCE:
            return "OldPodRemains", (
                f"pod {pod.name} of an earlier attempt was deleted but still exists; check its finalizers "
                f"(kubectl get pod {pod.name} -o jsonpath={{.metadata.finalizers}}) and the controller that should "
                "remove them"
            )
    return None
