"""Requests to end, taken down instead of ending the command at once."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """How often, and by what, the command was asked to end while this was open."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in WATCHED:
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]

    @property
    def exit_code(self) -> int:
        return 128 + self.last

    def _take(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.last = number
