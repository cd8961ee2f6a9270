"""Which live workers failed or were lost, why, and when each is replaced."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paddlejob.api.types import FailureAction, Role, Slot
from paddlejob.delays import exponential_delay
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import causes, failure_rules
from paddlejob.plan.policies.startup.startup_deadline import missed_deadline, starts_until
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

FIRST_DELAY = 2.0
LONGEST_DELAY = 60.0
"""Seconds from one start to the next of a worker that fails again and again. One that ran for longer starts at once."""
FAILURES, DISRUPTIONS, TIMEOUTS, IGNORED = "restarts", "disruptions", "startupTimeouts", "ignoredFailures"
"""The counters of the status."""


@dataclass(frozen=True)
class Loss:
    slot: Slot
    pod: Pod | None
    """None if it is gone already."""
    cause: Cause
    counter: str


def losses(s: Snapshot) -> list[Loss]:
    workers = [slot for slot in s.slots if slot[0] is Role.WORKER and slot[1] not in s.succeeded_workers]
    gone = [slot for slot in workers if slot not in s.current and slot not in s.joining]
    found = [_loss(s, slot, s.current[slot]) for slot in workers if slot in s.current]
    lost = [Loss(slot, None, causes.lost(s, slot), DISRUPTIONS) for slot in gone]
    return [_by_policy(s, loss) for loss in (*lost, *found) if loss]


def _loss(s: Snapshot, slot: Slot, pod: Pod) -> Loss | None:
    if disruption := causes.disruption_of(s, pod):
        return Loss(slot, pod, disruption, DISRUPTIONS)
    if pod.phase is PodPhase.FAILED:
        return Loss(slot, pod, causes.failure_of(s, pod), FAILURES)
    deadline = starts_until(s, pod)
    if deadline is None or s.now < deadline:
        return None
    return Loss(slot, pod, missed_deadline(s, [pod]), TIMEOUTS)


def _by_policy(s: Snapshot, loss: Loss) -> Loss:
    """The loss as spec.failurePolicy counts it. A failure that ends the job is permanent."""
    failed = loss.pod and loss.counter == FAILURES
    decision = failure_rules.decide(s, loss.cause, [loss.pod] if failed and loss.pod else ())
    if decision is None or loss.counter == TIMEOUTS:
        return loss
    match decision.action:
        case FailureAction.FAIL:
            return replace(loss, cause=failure_rules.fatal(decision, loss.cause), counter=FAILURES)
        case FailureAction.RESTART:
            return replace(loss, cause=replace(loss.cause, permanent=False), counter=FAILURES)
        case FailureAction.IGNORE:
            return replace(loss, counter=IGNORED if loss.counter == FAILURES else loss.counter)


def due(s: Snapshot, loss: Loss) -> float:
    """When the worker is replaced: at once, unless it ended soon after its last start, as a pod on a broken node does.

    The delay needs no record: the pod that ended stays until it is replaced.
    """
    pod = loss.pod
    if pod is None or pod.deleting or not pod.ended or not pod.replacement:
        return s.now
    return pod.created + exponential_delay(pod.replacement + 1, FIRST_DELAY, LONGEST_DELAY)
