"""A half-built job releases what it holds: two such jobs, each waiting for what the other has, would deadlock.

A gang is placed as a whole, so it never holds a half.
"""

from __future__ import annotations

from paddlejob.plan import rejections
from paddlejob.plan.actions import Plan
from paddlejob.plan.causes import Cause
from paddlejob.plan.jitter import jitter
from paddlejob.plan.objects.pod_group import is_gang
from paddlejob.plan.rebuild import rebuild
from paddlejob.plan.snapshot import Snapshot

PATIENCE = 60.0


def release_half_created(s: Snapshot) -> Plan | None:
    """Its pods use up a quota that is too small for the rest of them."""
    rejected = [one for one in s.world.rejections if rejections.is_over_quota(one)]
    if not rejected or not s.missing or not _time_is_up(s):
        return None
    message = (
        f"the quota is too small for {len(s.missing)} of {len(s.slots)} pods; the {len(s.current)} that exist are "
        f"released for a while; delete other objects, raise the quota or request less: {rejected[0].message}"
    )
    delay = jitter(s.job, s.status.attempt, 15, 45)
    return rebuild(s, Cause("HalfCreated", message), because="half created", delay=delay)


def release_half_placed(s: Snapshot) -> Plan | None:
    """Its pods occupy nodes, and the rest of them fit on none."""
    placed = [pod for pod in s.current.values() if pod.node]
    unplaced = [pod for pod in s.current.values() if pod.reason == "Unschedulable"]
    if not placed or not unplaced or not _time_is_up(s):
        return None
    message = (
        f"{len(unplaced)} of {len(s.slots)} pods do not fit on any node; the {len(placed)} that do are released for "
        f"a while; free or add nodes, or lower the requests of the template: {unplaced[0].message}"
    )
    delay = jitter(s.job, s.status.attempt, 5, 30)
    return rebuild(s, Cause("HalfPlaced", message), because="half placed", delay=delay)


def release_at(s: Snapshot) -> float | None:
    """When the pods that exist are released; None if that time has passed or never comes."""
    ends = _ends(s)
    return ends if ends is not None and ends > s.now else None


def _time_is_up(s: Snapshot) -> bool:
    ends = _ends(s)
    return ends is not None and s.now >= ends


def _ends(s: Snapshot) -> float | None:
    """Different for each job, so that one of two goes first."""
    if s.published or not s.current or is_gang(s.job):
        return None
    oldest = min(pod.created for pod in s.current.values())
    return oldest + jitter(s.job, s.status.attempt, PATIENCE, 1.5 * PATIENCE)
