"""A program that failed is restarted with the whole job, until backoffLimit is reached or the failure is permanent."""

from __future__ import annotations

from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis import causes
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.rebuild import backoff, rebuild
from paddlejob.plan.snapshot import Snapshot


def settle_failure(s: Snapshot) -> Plan | None:
    found = causes.failure(s)
    return count_failure(s, found) if found else None


def count_failure(s: Snapshot, found: Cause) -> Plan:
    """Restart the job, or fail it if that cannot help or was tried often enough."""
    if found.permanent:
        return fail(s, found)
    limit = s.job.spec.backoff_limit
    if s.status.restarts >= limit:
        return fail(s, _exhausted(s.status.restarts + 1, limit, found))
    count = s.status.restarts + 1
    delay = backoff(s, count)
    headline, newline, output = found.message.partition("\n")
    message = f"{headline}; restart {count} of {limit} in {delay:.0f} s{newline}{output}"
    return rebuild(s, Cause(found.reason, message), because=f"restart {count}", delay=delay, restarts=count)


def _exhausted(failures: int, limit: int, cause: Cause) -> Cause:
    often = f"{failures} times" if failures > 1 else "once"
    return Cause("BackoffLimitExceeded", f"failed {often}, backoffLimit is {limit}: {cause.message}")
