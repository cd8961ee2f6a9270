"""Pods that were deleted and should be gone, but still exist: on a lost node, or because they cannot be ended."""

from __future__ import annotations

from paddlejob.plan import times
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

FORCE_AFTER = 30.0
"""Seconds after a pod should have been gone. Unless its node is known to respond, the pod is force-deleted."""
LOOK_AGAIN = 15.0
"""Seconds after which a node that responds, with such a pod on it, is looked at again."""


def is_overdue(pod: Pod, now: float) -> bool:
    return pod.deletion_due is not None and now >= pod.deletion_due + FORCE_AFTER


def still_runs(s: Snapshot, pod: Pod) -> bool:
    """Its node responds but cannot end it: a program that hangs in a write to NFS may yet complete it."""
    return is_overdue(pod, s.now) and pod.lingers and pod.node in s.world.healthy_nodes


def look_again(s: Snapshot) -> float | None:
    """When the next pod becomes overdue, or the node of one that is has to be looked at again."""
    due = [pod.deletion_due + FORCE_AFTER for pod in s.world.pods if pod.deletion_due is not None]
    later = s.now + LOOK_AGAIN if any(still_runs(s, pod) for pod in s.world.pods) else None
    return times.earliest(later, *(moment for moment in due if moment > s.now))
