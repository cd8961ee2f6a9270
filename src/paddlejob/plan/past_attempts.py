"""The record of attempts that ended. Events say the same, but a cluster keeps them for an hour."""

from __future__ import annotations

from paddlejob.api.types import PastAttempt, Role, Status
from paddlejob.plan import times

KEPT = 10
MESSAGE_LIMIT = 300
"""With ten of them, at most about 4 KB of a status."""


def recorded(before: Status, after: Status, now: float) -> Status:
    """The status that follows `before`, with the attempt that ends with it, if one does."""
    if after.attempt == before.attempt or not before.attempt or before.finished:
        return after
    ended = PastAttempt(
        attempt=before.attempt,
        startTime=begin(before),
        endTime=times.format(now),
        reason=after.reason,
        message=after.headline[:MESSAGE_LIMIT],
        failed=_faults(after) > _faults(before),
        workers=before.role(Role.WORKER).replicas,
    )
    return after.model_copy(update={"pastAttempts": (*before.pastAttempts, ended)[-KEPT:]})


def begin(status: Status) -> str:
    """When the current attempt began: at the end of the one before it, or when the job was started or resumed."""
    ended = status.pastAttempts[-1].endTime if status.pastAttempts else ""
    return max(ended, status.startTime)


def _faults(status: Status) -> int:
    return status.restarts + status.disruptions + status.ignoredFailures + status.startupTimeouts
