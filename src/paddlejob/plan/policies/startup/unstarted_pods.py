"""Before training begins, a pod that its node rejected, or whose init container failed, is replaced alone.

Nothing is lost by that. A pod that was replaced too often costs what it would cost during training: a disruption, or a
restart if it was an init container. A rule of spec.failurePolicy about its exit status may end the job at once.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import FailureAction
from paddlejob.delays import exponential_delay
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import failure_rules
from paddlejob.plan.finish import fail
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.single_pods import can_replace, replace
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

MOST_TIMES = 3
FIRST_DELAY = 2.0
LONGEST_DELAY = 8.0


def replace_unstarted(s: Snapshot) -> Plan | None:
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
    due = [pod for pod in failed if not pod.deleting and s.now >= _due(pod)]
    if due:
        return replace(s, due, _cause(due))
    phase, wake_at = s.waiting_phase, times.earliest(*(_due(pod) for pod in failed if not pod.deleting))
    return Plan(reported(s, phase), (), wake_at)


def _fail_by_policy(s: Snapshot, failed: list[Pod]) -> Plan | None:
    ended = [pod for pod in failed if pod.init_failed]
    decision = failure_rules.decide(s, Cause(Reason.INIT_CONTAINER_FAILED, ""), ended)
    if decision is None or decision.action is not FailureAction.FAIL:
        return None
    pod = decision.pod or ended[0]
    return fail(s, failure_rules.fatal(decision, _init_failure(pod, "see its log")))


def _init_failure(pod: Pod, remedy: str) -> Cause:
    fact = f"an init container of {pod.name} failed with exit status {pod.exit_code}"
    return Cause(Reason.INIT_CONTAINER_FAILED, fact, remedy, pod.message)


def _never_started(pod: Pod) -> bool:
    return pod.disrupted or pod.init_failed


def _due(pod: Pod) -> float:
    """At once, then 4 and 8 seconds after the pod was created: a broken node rejects pods immediately."""
    count = pod.replacement
    return pod.created + (exponential_delay(count + 1, FIRST_DELAY, LONGEST_DELAY) if count else 0.0)


def _cause(pods: list[Pod]) -> Cause:
    pod = pods[0]
    others = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    count = f"replacing the pod ({pod.replacement + 1} of {MOST_TIMES}){others}"
    if pod.init_failed and not pod.disrupted:
        return _init_failure(pod, f"{count}; see its log")
    fact = f"{pod.name} could not start on node {pod.node} ({pod.reason or 'no reason given'})"
    return Cause(Reason.POD_REJECTED, fact, f"{count}: {pod.message}")
