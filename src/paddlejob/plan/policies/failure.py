"""A program that failed is restarted with the whole job, until backoffLimit is reached or the failure is permanent.

A rule of spec.failurePolicy may decide otherwise. Where steps are known, backoffLimit counts the failures since the job
last came further; otherwise it counts all. A program that ends twice in a row before any progress, with the same
error, fails as well.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import FailureAction, Progress
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import causes, error_line, failure_rules, suspects
from paddlejob.plan.diagnosis.failure_rules import Decision
from paddlejob.plan.finish import fail
from paddlejob.plan.restarts import backoff
from paddlejob.plan.restarts.backoff import Delay
from paddlejob.plan.restarts.rebuild import restart
from paddlejob.plan.snapshot import Snapshot

IN_VAIN = "another attempt would end in the same way"
LAST_ONE = "the last one if it ends with this error again (backoffLimit: 0 or pdj run --no-restart fails at once)"


def settle_failure(s: Snapshot) -> Plan | None:
    found = causes.failure(s)
    return count_failure(s, found) if found else None


def count_failure(s: Snapshot, cause: Cause) -> Plan:
    """Restart the job, or fail it if that cannot help or was tried often enough, or as spec.failurePolicy says."""
    decision = failure_rules.decide(s, cause)
    if decision is None:
        if cause.permanent:
            return fail(s, cause.adding(IN_VAIN if cause.error else ""))
        return restart_counted(s, cause, _early_error(s, cause))
    # Peers of the program that the rule is about may have failed as well, and with more output.
    cause = causes.failure_of(s, decision.pod) if decision.pod else cause
    match decision.action:
        case FailureAction.FAIL:
            return fail(s, failure_rules.fatal(decision, cause))
        case FailureAction.IGNORE:
            return _ignore(s, decision, cause)
        case FailureAction.RESTART:
            return restart_counted(s, cause)


def _ignore(s: Snapshot, decision: Decision, cause: Cause) -> Plan:
    count = s.status.ignoredFailures + 1
    delay = backoff.delay(s)
    why = f"{decision.rule} ignores it (ignored failure {count}, not counted)"
    cause = cause.adding(f"restarting the job {delay}, {why}")
    return restart(s, cause, delay, because=f"ignored failure {count}", ignoredFailures=count)


def _early_error(s: Snapshot, cause: Cause) -> str:
    """The error with which the program ended before any progress; empty if the job has ever come further."""
    return "" if backoff.steps_known(s) or backoff.made_progress(s) else cause.error


def restart_counted(s: Snapshot, cause: Cause, error: str = "") -> Plan:
    """Restart the job, or fail it if backoffLimit is reached, or the attempt before it ended with the same error."""
    count = s.status.restarts + 1
    # Since the highest step last rose, with this one. Where no step is known, all count.
    without_progress = 1 if backoff.gained_steps(s) else s.status.failuresWithoutProgress + 1
    counted = without_progress if backoff.steps_known(s) else count
    if counted > s.job.spec.backoff_limit:
        return fail(s, _exhausted(s, counted, cause))
    if error and error_line.is_same(error, s.status.earlyError):
        return fail(s, cause.adding(f"two attempts in a row ended so before any progress: {IN_VAIN}"))
    delay, blamed = backoff.delay(s), suspects.blame(s)
    announced = _announced(s, count, counted, delay)
    decided = restart(
        s,
        cause.adding(f"{announced}, {LAST_ONE}" if error else announced),
        delay,
        because=f"restart {count}",
        restarts=count,
        earlyError=error,
        failuresWithoutProgress=without_progress,
        suspectNodes=blamed.suspects,
        avoidedNodes=blamed.avoided,
    )
    if not blamed.message:
        return decided
    event = RecordEvent("NodeAvoided", blamed.message, warning=True)
    return Plan(decided.status, (*decided.actions, event), decided.wake_at)


def _announced(s: Snapshot, count: int, counted: int, delay: Delay) -> str:
    limit = s.job.spec.backoff_limit
    if not backoff.steps_known(s) or counted == count:
        return f"restart {count} of {limit} {delay}"
    return f"restart {count} {delay}, {counted} of {limit} since {_furthest(s)}"


def _exhausted(s: Snapshot, counted: int, cause: Cause) -> Cause:
    often = f"{counted} times" if counted > 1 else "once"
    since = f" since {_furthest(s)}" if backoff.steps_known(s) else ""
    ended = replace(cause, reason=Reason.BACKOFF_LIMIT_EXCEEDED)
    return ended.adding(f"failed {often}{since}, backoffLimit is {s.job.spec.backoff_limit}").adding(_counts_anew(s))


def _counts_anew(s: Snapshot) -> str:
    """A remedy for a program whose second phase, as fine-tuning after pre-training, counts its steps from 1 again."""
    progress = s.status.progress or Progress()
    if progress.highestStep is None or progress.step is None or progress.step >= progress.highestStep:
        return ""
    return (
        f"its last attempt reached step {progress.step}: if it starts counting again in a second phase, print a step "
        "that counts over all phases, or name one by spec.progress.pattern"
    )


def _furthest(s: Snapshot) -> str:
    return f"{(s.status.progress or Progress()).furthest} was reached"
