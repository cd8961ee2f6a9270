"""An attempt ends only after its log was read once more: its last steps decide whether it came further.

What was printed since the last regular read, which may be a minute ago, would otherwise be lost with the pods. If the
log cannot be read, the backend gives up after a few seconds, and the attempt is judged by what is known.
"""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan.actions import Delete, Plan, ReadLog
from paddlejob.plan.size import first_worker
from paddlejob.plan.snapshot import Snapshot

LOOK_AGAIN = 1.0
"""Seconds; the backend usually has it read much sooner, and says so."""


def read_before_end(s: Snapshot, decided: Plan) -> Plan:
    """The plan as it was decided, or to read the log first and decide again."""
    if s.job.status.finished or not s.published or not s.world.log_unread or not _ends(s, decided):
        return decided
    # That its workers are done is recorded meanwhile: they would train anew if their pods vanished.
    done = {"worker": decided.status.worker} if decided.status.phase is Phase.COMPLETED else {}
    return Plan(s.job.status.model_copy(update=done), (ReadLog(s.status.attempt),), s.now + LOOK_AGAIN)


def _ends(s: Snapshot, decided: Plan) -> bool:
    """Whether the attempt ends, or the pod whose log is read."""
    if decided.status.finished or decided.status.attempt != s.status.attempt:
        return True
    first = s.current.get((Role.WORKER, first_worker(s.job)))
    return first is not None and any(isinstance(one, Delete) and one.uid == first.uid for one in decided.actions)
