"""A program that failed is restarted with the whole job, until backoffLimit is reached or the failure is permanent.

A rule of spec.failurePolicy may decide otherwise. Where steps are known, backoffLimit counts the failures since the job
last came further; otherwise it counts all.
"""

from __future__ import annotations

from paddlejob.api.types import FailureAction, Progress
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.diagnosis import causes, failure_rules, suspects
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.diagnosis.failure_rules import Decision
from paddlejob.plan.finish import fail
from paddlejob.plan.restarts import backoff
from paddlejob.plan.restarts.rebuild import restart
from paddlejob.plan.snapshot import Snapshot


def settle_failure(s: Snapshot) -> Plan | None:
    found = causes.failure(s)
    return count_failure(s, found) if found else None


def count_failure(s: Snapshot, cause: Cause) -> Plan:
    """Restart the job, or fail it if that cannot help or was tried often enough, or as spec.failurePolicy says."""
    decision = failure_rules.decide(s, cause)
    if decision is None:
        return fail(s, cause) if cause.permanent else restart_counted(s, cause)
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
    headline, newline, output = cause.message.partition("\n")
    why = f"{decision.rule} ignores it (ignored failure {count}, not counted)"
    message = f"{headline}; restarting the job {_when(s)}, {why}{newline}{output}"
    return restart(s, Cause(cause.reason, message), because=f"ignored failure {count}", ignoredFailures=count)


def restart_counted(s: Snapshot, cause: Cause) -> Plan:
    """Restart the job, or fail it if backoffLimit is reached."""
    counted, limit = _counted(s), s.job.spec.backoff_limit
    if counted > limit:
        return fail(s, _exhausted(s, counted, cause))
    count = s.status.restarts + 1
    headline, newline, output = cause.message.partition("\n")
    message = f"{headline}; {_announced(s, count, counted)}{newline}{output}"
    blamed = suspects.blame(s)
    decided = restart(
        s,
        Cause(cause.reason, message),
        because=f"restart {count}",
        restarts=count,
        failuresWithoutProgress=_without_progress(s),
        suspectNodes=blamed.suspects,
        avoidedNodes=blamed.avoided,
    )
    if not blamed.message:
        return decided
    event = RecordEvent("NodeAvoided", blamed.message, warning=True)
    return Plan(decided.status, (*decided.actions, event), decided.wake_at)


def _without_progress(s: Snapshot) -> int:
    """Failures since the highest step last rose, with this one."""
    return 1 if backoff.gained_steps(s) else s.status.failuresWithoutProgress + 1


def _counted(s: Snapshot) -> int:
    """The failures that backoffLimit limits, with this one."""
    return _without_progress(s) if backoff.steps_known(s) else s.status.restarts + 1


def _announced(s: Snapshot, count: int, counted: int) -> str:
    limit, when = s.job.spec.backoff_limit, _when(s)
    if not backoff.steps_known(s) or counted == count:
        return f"restart {count} of {limit} {when}"
    return f"restart {count} {when}, {counted} of {limit} since {_furthest(s)}"


def _when(s: Snapshot) -> str:
    delay = backoff.delay(backoff.series(s))
    return f"in {delay:.0f} s" if delay else "now"


def _exhausted(s: Snapshot, counted: int, cause: Cause) -> Cause:
    often = f"{counted} times" if counted > 1 else "once"
    since = f" since {_furthest(s)}" if backoff.steps_known(s) else ""
    headline, newline, output = cause.message.partition("\n")
    message = f"failed {often}{since}, backoffLimit is {s.job.spec.backoff_limit}: {headline}{_counts_anew(s)}"
    return Cause("BackoffLimitExceeded", f"{message}{newline}{output}")


def _counts_anew(s: Snapshot) -> str:
    """A remedy for a program whose second phase, as fine-tuning after pre-training, counts its steps from 1 again."""
    progress = s.status.progress or Progress()
    if progress.highestStep is None or progress.step is None or progress.step >= progress.highestStep:
        return ""
    return (
        f"; its last attempt reached step {progress.step}: if it begins to count anew in a second phase, print a step "
        "that counts over all phases, or name one by spec.progress.pattern"
    )


def _furthest(s: Snapshot) -> str:
    return f"{(s.status.progress or Progress()).furthest} was reached"
