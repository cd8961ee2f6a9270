"""The attempts of a job: when each ran, with how many workers, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.api.types import PastAttempt, Role
from paddlejob.plan.past_attempts import begin
from paddlejob.targets.views import JobView
from paddlejob.web.views.row import moment


@dataclass(frozen=True)
class Attempt:
    number: int
    start: float | None
    end: float | None
    workers: int = 0
    reason: str = ""
    message: str = ""
    failed: bool = False


def attempts_of(view: JobView) -> list[Attempt]:
    """Those that the status records, oldest first, and the current one."""
    status = view.job.status
    if not status.attempt:
        return []
    past = [_past(one) for one in status.pastAttempts if one.attempt < status.attempt]
    return past if view.phase == "Suspended" else [*past, _current(view)]


def _past(one: PastAttempt) -> Attempt:
    start, end = moment(one.startTime), moment(one.endTime)
    return Attempt(one.attempt, start, end, one.workers, one.reason, one.message, one.failed)


def _current(view: JobView) -> Attempt:
    status = view.job.status
    return Attempt(
        status.attempt,
        start=moment(begin(status)) or moment(view.job.metadata.creationTimestamp),
        end=moment(status.completionTime) if status.finished else None,
        workers=status.role(Role.WORKER).replicas,
        reason=str(status.phase or "") if status.finished or view.phase == "Interrupted" else status.reason,
        message=view.headline,
        failed=view.phase in ("Failed", "Interrupted"),
    )
