"""Before training begins, a pod that its node rejected, or whose init container failed, is replaced alone.

Nothing is lost by that. A pod that was replaced too often costs what it would cost during training: a disruption, or a
restart if it was an init container. A rule of spec.failurePolicy about its exit status may end the job at once.
"""

from __future__ import annotations

from paddlejob.api.types import FailureAction
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis import failure_rules
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.replace import can_replace, replace, times_replaced
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

MOST_TIMES = 3
FIRST_DELAY = 2.0
INIT_FAILED = "InitContainerFailed"


def replace_rejected(s: Snapshot) -> Plan | None:
    if s.published:
        return None
    failed = [pod for pod in s.current.values() if pod.phase is PodPhase.FAILED]
    # If a program failed as well, the attempt is over.
    if not failed or not all(map(_never_started, failed)):
        return None
    if ended := _fail_by_policy(s, failed):
        return ended
    if not can_replace(s, failed, MOST_TIMES):
        return None
    due = [pod for pod in failed if not pod.deleting and s.now >= _due(s, pod)]
    if due:
        return replace(s, due, _cause(s, due))
    phase, wake_at = s.waiting_phase, times.earliest(*(_due(s, pod) for pod in failed if not pod.deleting))
    return Plan(reported(s, phase, s.status.reason, s.status.message), (), wake_at)


def _fail_by_policy(s: Snapshot, failed: list[Pod]) -> Plan | None:
    ended = [pod for pod in failed if pod.init_failed]
    decision = failure_rules.decide(s, Cause(INIT_FAILED, ""), ended)
    if decision is None or decision.action is not FailureAction.FAIL:
        return None
    pod = decision.pod or ended[0]
    cause = Cause(INIT_FAILED, f"{_init_failure(pod)}; see its log{_output(pod)}")
    return fail(s, failure_rules.fatal(decision, cause))


def _init_failure(pod: Pod) -> str:
    return f"an init container of {pod.name} failed with exit status {pod.exit_code}"


def _output(pod: Pod) -> str:
    return f"\n{pod.message}" if pod.message else ""


def _never_started(pod: Pod) -> bool:
    return pod.disrupted or pod.init_failed


def _due(s: Snapshot, pod: Pod) -> float:
    """At once, then 4 and 8 seconds after the pod was created: a broken node rejects pods immediately."""
    count = times_replaced(s, pod)
    return pod.created + (FIRST_DELAY * 2.0**count if count else 0.0)


def _cause(s: Snapshot, pods: list[Pod]) -> Cause:
    pod = pods[0]
    others = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    count = f"replacing the pod ({times_replaced(s, pod) + 1} of {MOST_TIMES}){others}"
    if pod.init_failed and not pod.disrupted:
        return Cause(INIT_FAILED, f"{_init_failure(pod)}; {count}; see its log{_output(pod)}")
    return Cause(
        "PodRejected",
        f"{pod.name} could not start on node {pod.node} ({pod.reason or 'no reason given'}); {count}: {pod.message}",
    )
