"""How the room tells its caller how far it is."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Literal

Step = Literal["reading", "counting", "shuffling", "checking", "writing"]
Progress = Callable[[Step, int, int | None], None]
"""Called with the step, the bytes done in it, and all its bytes where they are known."""


def silent(step: Step, done: int, total: int | None) -> None:
    """Tell nobody."""


class Meter:
    """Adds up the bytes of one step."""

    def __init__(self, tell: Progress, step: Step, total: int | None) -> None:
        self._tell, self._step, self._total, self._done = tell, step, total, 0
        self._lock = Lock()
        tell(step, 0, total)

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._tell(self._step, self._done, self._total)
