"""Giving up what a half-built job holds: two such jobs, each waiting for what the other has, would starve.

A gang is placed as a whole, so it never holds a half.
"""

from __future__ import annotations

from paddlejob.plan import gang
from paddlejob.plan import rejections as rejections
from paddlejob.plan.actions import Plan
from paddlejob.plan.causes import Cause
from paddlejob.plan.rebuild import jitter, rebuild
from paddlejob.plan.snapshot import Snapshot

PATIENCE = 60.0


def release_half_created(s: Snapshot) -> Plan | None:
    """Its pods use up a quota that has no room for the rest of them."""
    refused = [one for one in s.world.rejections if rejections.over_quota(one)]
    if not refused or not s.missing or not _time_is_up(s):
        return None
    cause = Cause(
        "HalfCreated",
        f"the quota has no room for {len(s.missing)} of {len(s.slots)} pods; the {len(s.current)} that are there are "
        f"released for a while; free some, raise the quota or ask for less: {refused[0].message}",
    )
    return rebuild(s, cause, because="half created", delay=jitter(s, 15, 45))


def release_half_placed(s: Snapshot) -> Plan | None:
    """Its pods hold nodes, and for the rest of them there is none."""
    placed = [pod for pod in s.current.values() if pod.node]
    unplaced = [pod for pod in s.current.values() if pod.reason == "Unschedulable"]
    if not placed or not unplaced or not _time_is_up(s):
        return None
    cause = Cause(
        "HalfPlaced",
        f"{len(unplaced)} of {len(s.slots)} pods fit on no node; the {len(placed)} that had one are released for a "
        f"while; free or add nodes, or lower what the template asks for: {unplaced[0].message}",
    )
    return rebuild(s, cause, because="half placed", delay=jitter(s, 5, 30))


def due(s: Snapshot) -> float | None:
    """When patience with the pods that are there ends; None if it has, or never does."""
    ends = _ends(s)
    return ends if ends is not None and ends > s.now else None


def _time_is_up(s: Snapshot) -> bool:
    ends = _ends(s)
    return ends is not None and s.now >= ends


def _ends(s: Snapshot) -> float | None:
    """Different for each job, so that one of two goes first."""
    if s.published or not s.current or gang.wanted(s.job):
        return None
    return min(pod.created for pod in s.current.values()) + jitter(s, PATIENCE, 1.5 * PATIENCE)
