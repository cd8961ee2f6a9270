"""A job fails when it has been active for longer than activeDeadlineSeconds."""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.snapshot import Snapshot


def fail_past_deadline(s: Snapshot) -> Plan | None:
    due = deadline(s)
    if due is None or s.now < due:
        return None
    fact = f"the job was active for longer than activeDeadlineSeconds ({s.job.spec.activeDeadlineSeconds} s)"
    return fail(s, Cause(Reason.DEADLINE_EXCEEDED, fact, "raise it, or shorten the training"))


def deadline(s: Snapshot) -> float | None:
    """When the job must have ended; None if there is no limit or it has ended."""
    limit = s.job.spec.activeDeadlineSeconds
    if limit is None or not s.status.startTime or s.status.finished:
        return None
    return times.parse(s.status.startTime) + limit
