"""The last read of each attempt's log, for which its end waits: a few seconds at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LONGEST_WAIT = 10.0
"""Seconds, also if many jobs end at once and wait for their turn."""
TRIED_FOR = 3.0
"""Seconds in which a read that fails is tried again, if the log could be read before. A node that does not answer is
asked once, which takes longer."""
VALID_FOR = 30.0
"""Seconds. An attempt ends right after its last read; if it did not, there is more to read by now."""


@dataclass
class _LastRead:
    attempt: int
    asked: float
    over: bool = False
    """Read, or given up."""


class LastReads:
    """By the uid of a job."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[str, _LastRead] = {}

    def ask(self, uid: str, attempt: int) -> None:
        if self._find(uid, attempt) is None:
            self._known[uid] = _LastRead(attempt, self._monotonic())

    def is_asked_for(self, uid: str, attempt: int) -> bool:
        found = self._find(uid, attempt)
        return found is not None and not self._is_over(found)

    def was_made(self, uid: str, attempt: int) -> bool:
        """Or given up."""
        found = self._find(uid, attempt)
        return found is not None and self._is_over(found)

    def finish(self, uid: str, attempt: int, began: float, *, again: bool = False) -> bool:
        """A read that began then has ended; `again`: it failed, but may succeed the next time.

        Returns whether the end of the attempt has waited for that.
        """
        found = self._find(uid, attempt)
        if found is None or found.over or began < found.asked:
            return False
        found.over = not again or self._monotonic() - found.asked >= TRIED_FOR
        return found.over

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    def _find(self, uid: str, attempt: int) -> _LastRead | None:
        found = self._known.get(uid)
        current = found and found.attempt == attempt and self._monotonic() - found.asked < VALID_FOR
        return found if current else None

    def _is_over(self, found: _LastRead) -> bool:
        return found.over or self._monotonic() - found.asked >= LONGEST_WAIT
