"""Pods that were deleted and should be gone, but still exist: on a lost node, or because they cannot be ended.

A node that the node controller calls unreachable does not learn that its pods are deleted, so waiting for it is of no
use. A member of a distributed job cannot write much more there: its peers are gone before the next attempt begins. A
job of a single pod may train on alone, so there the clock decides as well.
"""

from __future__ import annotations

from paddlejob.plan import times
from paddlejob.plan.restarts.shutdown import unmounts
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import NODE_LOST, NodeState, Pod

FORCE_AFTER = 30.0
"""Seconds after a pod should have been gone. Unless its node is known to respond, the pod is force-deleted."""
LOOK_AGAIN = 5.0
"""Seconds after which the node of a pod that should be gone is looked at again."""


def needs_node(pod: Pod, now: float) -> bool:
    """Whether the state of its node decides about the pod: it was given up, or should be gone."""
    return pod.deletion_due is not None and (_given_up(pod) or now >= pod.deletion_due)


def is_past_due(pod: Pod, now: float) -> bool:
    return pod.deletion_due is not None and now >= pod.deletion_due + FORCE_AFTER


def must_be_forced(s: Snapshot, pod: Pod) -> bool:
    return _is_lost(s, pod) or (is_past_due(pod, s.now) and not still_runs(s, pod))


def still_runs(s: Snapshot, pod: Pod) -> bool:
    """Its node responds but cannot end it: a program that hangs in a write to NFS, or a volume, may yet complete it."""
    writes = pod.lingers or unmounts(s, pod.role)
    return is_past_due(pod, s.now) and writes and _state(s, pod) is NodeState.READY


def look_again(s: Snapshot) -> float | None:
    """When the next pod should be gone, or the node of one that should be has to be looked at again."""
    waiting = [pod for pod in s.world.pods if not must_be_forced(s, pod)]
    due = [pod.deletion_due for pod in waiting if pod.deletion_due is not None and pod.deletion_due > s.now]
    later = s.now + LOOK_AGAIN if any(needs_node(pod, s.now) for pod in waiting) else None
    return times.earliest(later, *due)


def _is_lost(s: Snapshot, pod: Pod) -> bool:
    if not needs_node(pod, s.now):
        return False
    state = _state(s, pod)
    return state is NodeState.GONE or (state is NodeState.UNREACHABLE and len(s.slots) > 1)


def _given_up(pod: Pod) -> bool:
    """Kubernetes deleted it after the time for which it tolerates a node that does not respond."""
    return pod.disrupted and pod.reason == NODE_LOST


def _state(s: Snapshot, pod: Pod) -> NodeState | None:
    return s.world.nodes.get(pod.node)
