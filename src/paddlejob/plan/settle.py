"""Whether the attempt, or the job, is over: success, disruption, failure, deadline."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import causes, times
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.causes import Cause
from paddlejob.plan.finish import clean_up
from paddlejob.plan.rebuild import backoff, rebuild
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def settle_success(s: Snapshot) -> Plan | None:
    """Complete when every worker has succeeded; servers do not count."""
    workers = s.job.spec.roles[Role.WORKER].replicas
    if len([index for index in s.succeeded_workers if index < workers]) < workers:
        return None
    message = f"all {workers} workers succeeded" if workers > 1 else "the worker succeeded"
    status = reported(s, Phase.COMPLETED, "Completed", message, completionTime=times.format(s.now))
    return Plan(status, (*clean_up(s, Phase.COMPLETED), RecordEvent("Completed", message)))


def settle_disruption(s: Snapshot) -> Plan | None:
    cause = causes.disruption(s)
    if cause is None:
        return None
    count = s.status.disruptions + 1
    delay = backoff(s, count)
    told = Cause(cause.reason, f"{cause.message}; the job is rebuilt (disruption {count}, not counted as a failure)")
    return rebuild(s, told, because=f"disruption {count}", delay=delay, disruptions=count)


def settle_failure(s: Snapshot) -> Plan | None:
    cause = causes.failure(s)
    if cause is None:
        return None
    if s.status.restarts >= s.job.spec.backoff_limit:
        return fail(s, _exhausted(s, cause))
    count = s.status.restarts + 1
    delay = backoff(s, count)
    headline, _, words = cause.message.partition("\n")
    told = Cause(
        cause.reason,
        f"{headline}; restart {count} of {s.job.spec.backoff_limit} in {delay:.0f} s" + (f"\n{words}" if words else ""),
    )
    return rebuild(s, told, because=f"restart {count}", delay=delay, restarts=count)


def _exhausted(s: Snapshot, cause: Cause) -> Cause:
    times_failed = s.status.restarts + 1
    often = f"{times_failed} times" if times_failed > 1 else "once"
    return Cause("BackoffLimitExceeded", f"failed {often}, backoffLimit is {s.job.spec.backoff_limit}: {cause.message}")


def end_overdue(s: Snapshot) -> Plan | None:
    """The deadline is over. When it is not, the caller plans again at that time."""
    ends = deadline(s)
    if ends is None or s.now < ends:
        return None
    message = (
        f"the job has been active for more than activeDeadlineSeconds ({s.job.spec.activeDeadlineSeconds} s); "
        "raise it or train less"
    )
    return fail(s, Cause("DeadlineExceeded", message))


def deadline(s: Snapshot) -> float | None:
    limit = s.job.spec.activeDeadlineSeconds
    if limit is None or not s.status.startTime or s.status.finished:
        return None
    return times.parse(s.status.startTime) + limit


def fail(s: Snapshot, cause: Cause) -> Plan:
    status = reported(s, Phase.FAILED, cause.reason, cause.message, completionTime=times.format(s.now))
    return Plan(status, (*clean_up(s, Phase.FAILED), RecordEvent(cause.reason, cause.message, warning=True)))
