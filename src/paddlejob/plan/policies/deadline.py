"""A job fails when it has been active for longer than activeDeadlineSeconds."""

from __future__ import annotations

from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.snapshot import Snapshot


def fail_overdue(s: Snapshot) -> Plan | None:
    due = deadline(s)
    if due is None or s.now < due:
        return None
    message = (
        f"the job was active for longer than activeDeadlineSeconds ({s.job.spec.activeDeadlineSeconds} s); "
        "raise it, or shorten the training"
    )
    return fail(s, Cause("DeadlineExceeded", message))


def deadline(s: Snapshot) -> float | None:
    """When the job must have ended; None if there is no limit or it has ended."""
    limit = s.job.spec.activeDeadlineSeconds
    if limit is None or not s.status.startTime or s.status.finished:
        return None
    return times.parse(s.status.startTime) + limit
