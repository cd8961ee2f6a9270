"""A pod that does not get ready to start within startupDeadlineSeconds is replaced once; then all pods are deleted.

It is tried again after a growing delay. That is counted in status.startupTimeouts and not against backoffLimit: the
program never ran. What takes time is pulling images and mounting volumes; init containers may run for as long as they
like, and a pod without a node is a matter of scheduleTimeoutSeconds.
"""

from __future__ import annotations

from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.restarts.rebuild import rebuild
from paddlejob.plan.restarts.replace import can_replace, replace
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

REASON = "StartupDeadlineExceeded"
FIRST_DELAY = 30.0
LONGEST_DELAY = 600.0


def restart_overdue(s: Snapshot) -> Plan | None:
    overdue = [pod for pod in s.current.values() if (due := _due(s, pod)) is not None and s.now >= due]
    if not overdue:
        return None
    fact, advice = _fact(s, overdue), "check its image, its volumes and its node, or raise startupDeadlineSeconds"
    if can_replace(s, overdue, most=1):
        return replace(s, overdue, Cause(REASON, f"{fact}; replacing it; {advice}{_details(overdue[0])}"))
    count = s.status.startupTimeouts + 1
    delay = times.exponential_delay(count, FIRST_DELAY, LONGEST_DELAY)
    message = (
        f"{fact}; all pods are deleted and created again in {delay:.0f} s (time {count}, not counted as a failure); "
        f"{advice}{_details(overdue[0])}"
    )
    return rebuild(s, Cause(REASON, message), because="startup deadline", delay=delay, startupTimeouts=count)


def startup_deadline(s: Snapshot) -> float | None:
    """When the first pod will have missed the deadline; None if none is starting."""
    return times.earliest(*(_due(s, pod) for pod in s.current.values()))


def _due(s: Snapshot, pod: Pod) -> float | None:
    return None if s.published else starts_until(s, pod)


def starts_until(s: Snapshot, pod: Pod) -> float | None:
    """When a pod that is starting misses the deadline; None if it is not starting."""
    starting = pod.phase is PodPhase.PENDING and pod.node and not pod.initializing
    if not starting or pod.deleting or pod.disrupted or not pod.scheduling_since:
        return None
    return max(pod.scheduling_since, pod.init_ended) + s.job.spec.startup_deadline


def _fact(s: Snapshot, overdue: list[Pod]) -> str:
    others = f" and {len(overdue) - 1} more" if len(overdue) > 1 else ""
    return f"{overdue[0].name}{others} did not start on node {overdue[0].node} in {s.job.spec.startup_deadline} s"


def _details(pod: Pod) -> str:
    found = ": ".join(filter(None, (pod.reason, pod.message)))
    return f": {found}" if found else ""
