"""A half-built job releases what it holds: two such jobs, each waiting for what the other has, would deadlock.

It does so after `spec.scheduleTimeoutSeconds`, and up to half as long again: that differs between jobs, so that one of
two goes first. A gang that Volcano places as a whole never holds a half, but one with a smaller minAvailable may.
"""

from __future__ import annotations

from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.jitter import jitter
from paddlejob.plan.rebuild import rebuild
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod


def release_half_created(s: Snapshot) -> Plan | None:
    """Its pods use up a quota that is too small for the rest of them."""
    rejected = [one for one in s.world.rejections if rejections.is_over_quota(one)]
    if not rejected or not s.missing or not _is_over(s, _half_created_since(s)):
        return None
    message = (
        f"the quota is too small for {len(s.missing)} of {len(s.slots)} pods; the {len(s.current)} that exist are "
        "deleted for now so that other jobs can use their resources; delete other objects, raise the "
        f"quota or request less: {rejected[0].message}"
    )
    delay = jitter(s.job, s.status.attempt, 15, 45)
    return rebuild(s, Cause("HalfCreated", message), because="half created", delay=delay)


def release_half_placed(s: Snapshot) -> Plan | None:
    """Its pods occupy nodes, and the rest of them fit on none."""
    if not _is_over(s, _half_placed_since(s)):
        return None
    unplaced = _unplaced(s)
    message = (
        f"{len(unplaced)} of {len(s.slots)} pods do not fit on any node; the {len(_placed(s))} that do are deleted "
        "for now so that other jobs can use their resources; free or add nodes, or lower the requests of the "
        f"template: {unplaced[0].message}"
    )
    delay = jitter(s.job, s.status.attempt, 5, 30)
    return rebuild(s, Cause("HalfPlaced", message), because="half placed", delay=delay)


def half_created_until(s: Snapshot) -> float | None:
    """When the pods that exist are released if the others stay rejected; None if that is past or never happens."""
    return _if_to_come(s, _half_created_since(s))


def half_placed_until(s: Snapshot) -> float | None:
    """When the pods that are placed are released if no other is; None if that is past or never happens."""
    return _if_to_come(s, _half_placed_since(s))


def _half_created_since(s: Snapshot) -> float | None:
    if s.published or not s.current:
        return None
    return min(pod.created for pod in s.current.values())


def _half_placed_since(s: Snapshot) -> float | None:
    """Each pod that is placed is progress: an autoscaler may bring one node after the other.

    While other pods are preempted for one of the job's, the job holds on: they would have been killed in vain.
    """
    placed, unplaced = _placed(s), _unplaced(s)
    if s.published or not placed or not unplaced or any(pod.nominated for pod in unplaced):
        return None
    last_placed = max(pod.scheduling_since for pod in placed)
    return max(last_placed, min(pod.scheduling_since or pod.created for pod in unplaced))


def _placed(s: Snapshot) -> list[Pod]:
    return [pod for pod in s.current.values() if pod.node]


def _unplaced(s: Snapshot) -> list[Pod]:
    return [pod for pod in s.current.values() if pod.reason == "Unschedulable" and not pod.node]


def _is_over(s: Snapshot, since: float | None) -> bool:
    return since is not None and s.now >= since + _patience(s)


def _if_to_come(s: Snapshot, since: float | None) -> float | None:
    return since + _patience(s) if since is not None and s.now < since + _patience(s) else None


def _patience(s: Snapshot) -> float:
    timeout = s.job.spec.schedule_timeout
    return jitter(s.job, s.status.attempt, timeout, 1.5 * timeout)
