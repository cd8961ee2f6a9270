"""Signals that ask the command to end, counted instead of ending it immediately."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Counts the signals received inside the `with` block, and remembers the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in HANDLED:
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    @property
    def exit_code(self) -> int:
        return 128 + self.last

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.last = number
