"""A pod that does not start within startupDeadlineSeconds is replaced once; then all pods are deleted.

Once the start barrier is open its peers wait for it, so all pods are deleted at once.

It is tried again after a growing delay. That is counted in status.startupTimeouts and not against backoffLimit: the
program never ran. What takes time is pulling images and mounting volumes; init containers may run for as long as they
like, and a pod without a node is a matter of scheduleTimeoutSeconds.
"""

from __future__ import annotations

import dataclasses

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.delays import exponential_delay
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.conditions import START_BARRIER_OPEN
from paddlejob.plan.restarts.rebuild import rebuild
from paddlejob.plan.restarts.single_pods import can_replace, replace
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

FIRST_DELAY = 30.0
LONGEST_DELAY = 600.0


def restart_late_start(s: Snapshot) -> Plan | None:
    late = [pod for pod in s.current.values() if is_late(s, pod)]
    if not late:
        return None
    cause = missed_deadline(s, late)
    if not s.published and can_replace(s, late, most=1):
        return replace(s, late, _explained(cause, "replacing it", late[0]))
    count = s.status.startupTimeouts + 1
    delay = exponential_delay(count, FIRST_DELAY, LONGEST_DELAY)
    again = f"all pods are deleted and created again in {delay:.0f} s (time {count}, not counted as a failure)"
    explained = _explained(cause, again, late[0])
    return rebuild(s, explained, because="startup deadline", delay=delay, startupTimeouts=count)


def is_late(s: Snapshot, pod: Pod) -> bool:
    due = _due(s, pod)
    return due is not None and s.now >= due


def startup_deadline(s: Snapshot) -> float | None:
    """When the first pod will have missed the deadline; None if none is starting."""
    return times.earliest(*(_due(s, pod) for pod in s.current.values()))


def _due(s: Snapshot, pod: Pod) -> float | None:
    """A job that runs has started all its pods."""
    return None if s.published and s.status.phase is Phase.RUNNING else starts_until(s, pod)


def starts_until(s: Snapshot, pod: Pod) -> float | None:
    """When a pod that is starting misses the deadline; None if it is not starting."""
    has_environment = s.published and s.status.attempt in s.world.environments
    starting = pod.phase is PodPhase.PENDING or (pod.phase is PodPhase.WAITING and has_environment)
    if not starting or not pod.node or pod.initializing or pod.deleting or pod.disrupted or not pod.scheduling_since:
        return None
    return max(pod.scheduling_since, pod.init_ended, _opened(s)) + s.job.spec.startup_deadline


def _opened(s: Snapshot) -> float:
    """When the start barrier was opened, from which pods that waited for others have their time; 0 if it is closed."""
    found = s.status.condition(START_BARRIER_OPEN)
    return times.parse(found.lastTransitionTime) if found and found.status == "True" else 0.0


def missed_deadline(s: Snapshot, late: list[Pod]) -> Cause:
    others = f" and {len(late) - 1} more" if len(late) > 1 else ""
    fact = f"{late[0].name}{others} did not start on node {late[0].node} in {s.job.spec.startup_deadline} s"
    remedy = "check its image, its volumes and its node, or raise startupDeadlineSeconds"
    return Cause(Reason.STARTUP_DEADLINE_EXCEEDED, fact, remedy)


def _explained(cause: Cause, follows: str, pod: Pod) -> Cause:
    """With what is done about it, and what the kubelet says."""
    remedy = ": ".join(filter(None, (f"{follows}; {cause.remedy}", pod.reason, pod.message)))
    return dataclasses.replace(cause, remedy=remedy)
