"""Pods of an earlier attempt are deleted first: they have the names that the current attempt needs."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis.overdue import still_runs
from paddlejob.plan.diagnosis.reasons import Reason
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.shutdown import delete_pod
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

FINALIZER_PATIENCE = 60.0


def clear_stale(s: Snapshot) -> Plan | None:
    if not s.stale:
        return None
    phase = s.status.phase or Phase.PENDING
    reason, message = _remains(s) or (s.status.reason, s.status.message)
    deletes = [delete_pod(pod, "of an earlier attempt") for pod in s.stale if _can_go(s, pod)]
    patience = [pod.deletion_due + FINALIZER_PATIENCE for pod in s.stale if pod.deletion_due is not None]
    wake_at = times.earliest(*(moment for moment in patience if moment >= s.now))
    return Plan(reported(s, phase, reason, message), tuple(deletes), wake_at)


def _can_go(s: Snapshot, pod: Pod) -> bool:
    """Not deleted yet, or it need not wait for its kubelet any longer. One with a finalizer is due then, and stays."""
    return pod.deletion_due is None or (pod.containers_ended and s.now < pod.deletion_due)


def _remains(s: Snapshot) -> Reason | None:
    """A pod that is still there long after it should have been gone, even by force, has a finalizer."""
    for pod in s.stale:
        if still_runs(s, pod):
            return "OldPodRemains", (
                f"pod {pod.name} of an earlier attempt was deleted but does not end, although its node {pod.node} "
                "responds; its program may still write, so it is not replaced; check the volumes of that node, or "
                f"delete the pod by force (kubectl delete pod {pod.name} --grace-period=0 --force)"
            )
        if pod.deletion_due is not None and s.now >= pod.deletion_due + FINALIZER_PATIENCE:
            return "OldPodRemains", (
                f"pod {pod.name} of an earlier attempt was deleted but still exists; check its finalizers "
                f"(kubectl get pod {pod.name} -o jsonpath={{.metadata.finalizers}}) and the controller that should "
                "remove them"
            )
    return None
