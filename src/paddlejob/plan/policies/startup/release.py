"""A half-built job releases what it holds: two such jobs, each waiting for what the other has, would deadlock.

It does so after `spec.scheduleTimeoutSeconds`, plus up to 50%; that differs between jobs, so one of two goes first.
A gang that Volcano schedules as a whole never holds a half, but one with a smaller minAvailable may. So does a job
that must stay within one domain: the first pod chooses it, whether or not the others fit. The next attempt prefers
domains that were not tried.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.diagnosis.waiting import in_one_domain
from paddlejob.plan.restarts.jitter import jitter
from paddlejob.plan.restarts.rebuild import rebuild
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

MOST_DOMAINS = 16
"""Domains that are remembered; with more, the oldest is forgotten."""


def release_partially_created(s: Snapshot) -> Plan | None:
    """Its pods use up a quota that is too small for the rest of them."""
    rejected = [one for one in s.world.rejections if rejections.is_over_quota(one)]
    freed = all(rejections.may_be_freed(one, s.status.attempt) for one in rejected)
    if freed or not s.missing or not _is_over(s, _partially_created_since(s)):
        return None
    fact = (
        f"the quota is too small for {len(s.missing)} of {len(s.slots)} pods; the {len(s.current)} that exist are "
        "deleted for now so that other jobs can use their resources"
    )
    remedy = f"delete other objects, raise the quota or request less: {rejected[0].message}"
    cause, delay = Cause(Reason.PARTIALLY_CREATED, fact, remedy), jitter(s.job, s.status.attempt, 15, 45)
    return rebuild(s, cause, because="partially created", delay=delay)


def release_partially_scheduled(s: Snapshot) -> Plan | None:
    """Its pods occupy nodes, and the rest of them fit on none."""
    if not _is_over(s, _partially_scheduled_since(s)):
        return None
    tried = _domain(s)
    fact = (
        f"{len(s.unscheduled)} of {len(s.slots)} pods do not fit on any node{in_one_domain(s.job, tried)}; the "
        f"{len(_scheduled(s))} that do are deleted for now so that other jobs can use their resources"
    )
    remedy = f"free or add nodes, or lower the requests of the template: {s.unscheduled[0].message}"
    delay = jitter(s.job, s.status.attempt, 5, 30)
    avoided = tuple(one for one in s.status.avoidedDomains if one != tried) + ((tried,) if tried else ())
    cause = Cause(Reason.PARTIALLY_SCHEDULED, fact, remedy)
    return rebuild(s, cause, because="partially scheduled", delay=delay, avoidedDomains=avoided[-MOST_DOMAINS:])


def _domain(s: Snapshot) -> str:
    """The domain that the pods which have a node must not leave; empty if there is none, or it is not known."""
    return next((found for pod in _scheduled(s) if (found := s.world.domains.get(pod.node))), "")


def partially_created_until(s: Snapshot) -> float | None:
    """When the pods that exist are deleted if the others stay rejected; None if that is past or never happens."""
    return _if_to_come(s, _partially_created_since(s))


def partially_scheduled_until(s: Snapshot) -> float | None:
    """When the pods that are scheduled are deleted if no other is; None if that is past or never happens."""
    return _if_to_come(s, _partially_scheduled_since(s))


def _partially_created_since(s: Snapshot) -> float | None:
    if s.published or not s.current:
        return None
    return min(pod.created for pod in s.current.values())


def _partially_scheduled_since(s: Snapshot) -> float | None:
    """Each pod that is scheduled is progress: an autoscaler may bring one node after the other.

    While other pods are preempted for one of the job's, the job holds on: they would have been killed in vain.
    """
    scheduled = _scheduled(s)
    if s.published or not scheduled or not s.unscheduled or any(pod.nominated for pod in s.unscheduled):
        return None
    last_scheduled = max(pod.scheduling_since for pod in scheduled)
    return max(last_scheduled, min(pod.scheduling_since or pod.created for pod in s.unscheduled))


def _scheduled(s: Snapshot) -> list[Pod]:
    return [pod for pod in s.current.values() if pod.node]


def _is_over(s: Snapshot, since: float | None) -> bool:
    return since is not None and s.now >= since + _patience(s)


def _if_to_come(s: Snapshot, since: float | None) -> float | None:
    return since + _patience(s) if since is not None and s.now < since + _patience(s) else None


def _patience(s: Snapshot) -> float:
    timeout = s.job.spec.schedule_timeout
    return jitter(s.job, s.status.attempt, timeout, 1.5 * timeout)
