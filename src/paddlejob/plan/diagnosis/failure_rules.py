"""The rules of spec.failurePolicy: which of them applies to the end of an attempt, or of one pod."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import ExitCodeOperator, ExitCodes, FailureAction, FailureRule
from paddlejob.plan.cause import Cause
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase


@dataclass(frozen=True)
class Decision:
    """What the first rule that applies asks for."""

    number: int
    action: FailureAction
    pod: Pod | None = None
    """The first that exited with a status of the rule; None for other rules."""

    @property
    def rule(self) -> str:
        return f"failurePolicy.rules[{self.number}]"


def decide(s: Snapshot, cause: Cause, pods: Iterable[Pod] | None = None) -> Decision | None:
    """`pods` are those that ended; by default, all of the attempt."""
    policy = s.job.spec.failurePolicy
    ended = [pod for pod in (s.current.values() if pods is None else pods) if _failed_itself(pod)]
    for number, rule in enumerate(policy.rules if policy else ()):
        if _applies(rule, cause, ended):
            return Decision(number, rule.action, _telling(rule, ended))
    return None


def fatal(decision: Decision, cause: Cause) -> Cause:
    """The cause of a job that a rule ends."""
    ended = cause.adding(f"{decision.rule} ends the job instead of restarting it")
    return replace(ended, reason=Reason.FAILURE_POLICY, permanent=True)


def _applies(rule: FailureRule, cause: Cause, ended: list[Pod]) -> bool:
    if rule.onExitCodes is not None:
        return _exited(rule.onExitCodes, ended)
    return cause.reason in (rule.onReasons or ())


def _telling(rule: FailureRule, ended: list[Pod]) -> Pod | None:
    codes = rule.onExitCodes
    if codes is None or codes.operator is not ExitCodeOperator.IN:
        return None
    return next(pod for pod in ended if codes.role in (None, pod.role) and pod.exit_code in codes.values)


def _exited(wanted: ExitCodes, ended: list[Pod]) -> bool:
    """NotIn is not judged pod by pod: peers of a program that failed fail too, with statuses of their own."""
    codes = {pod.exit_code for pod in ended if wanted.role in (None, pod.role)}
    found = not codes.isdisjoint(wanted.values)
    return found if wanted.operator is ExitCodeOperator.IN else bool(codes) and not found


def _failed_itself(pod: Pod) -> bool:
    """Whether its program exited with a status of its own choice."""
    return pod.phase is PodPhase.FAILED and pod.exit_code not in (None, 0) and not pod.disrupted and not pod.deleting
