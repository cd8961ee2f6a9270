"""Signals that ask the command to end, counted instead of ending it at once."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """How often, and by which signal, the command was asked to end while this was open.

    A signal that was ignored when the command started stays ignored, so that `nohup pdj run` works as asked.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in HANDLED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    @property
    def exit_code(self) -> int:
        return 128 + self.last

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.last = number
