"""Reports progress to the caller."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Literal

Step = Literal["reading", "counting", "shuffling", "checking", "writing"]
Progress = Callable[[Step, int, int | None], None]
"""Called with the step, the bytes processed so far, and the total number of bytes if it is known."""


def silent(step: Step, done: int, total: int | None) -> None:
    """Report nothing."""


class Meter:
    """Counts the bytes of one step; safe to use from several threads."""

    def __init__(self, progress: Progress, step: Step, total: int | None) -> None:
        self._progress, self._step, self._total, self._done = progress, step, total, 0
        self._lock = Lock()
        progress(step, 0, total)

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._progress(self._step, self._done, self._total)
