"""Counts the steps of one attempt: how far it is, how fast, and since when it is beyond the highest step so far."""

from __future__ import annotations

from collections import deque

from paddlejob.progress import Sample

WINDOW = 300.0
"""Seconds over which the speed is measured."""
SHORTEST_WINDOW = 5.0
POINTS_APART = 2.0
MOST_STEPS = 10**15
"""A larger number is not a step, and JSON numbers would lose its digits."""


class StepCounter:
    """`highest` is the highest step of earlier attempts."""

    def __init__(self, highest: int | None) -> None:
        self.step: int | None = None
        self.total_steps: int | None = None
        self.epoch: int | None = None
        self.total_epochs: int | None = None
        self.ahead_since: float | None = None
        """When the attempt reached the highest step of those before it."""
        self._before = highest
        self._top: tuple[float, int] | None = None
        self._points: deque[tuple[float, int]] = deque()

    def count(self, at: float, sample: Sample) -> None:
        self.epoch = _valid(sample.epoch, self.epoch)
        self.total_epochs = _valid(sample.total_epochs, self.total_epochs)
        self.total_steps = _valid(sample.total_steps, self.total_steps)
        step = _valid(sample.step, None)
        if step is None:
            return
        self.step = step
        if self._top is None or step > self._top[1]:
            self._rise(at, step)

    def _rise(self, at: float, step: int) -> None:
        self._note_ahead(at, step)
        self._top = (at, step)
        if self._points and at < self._points[-1][0]:
            self._points.clear()  # The clock was set back.
        if not self._points or at - self._points[-1][0] >= POINTS_APART:
            self._points.append((at, step))
        while at - self._points[0][0] > WINDOW and len(self._points) > 2:
            self._points.popleft()

    def _note_ahead(self, at: float, step: int) -> None:
        """Between two lines, the step is assumed to have risen evenly."""
        if self.ahead_since is not None or (self._before is not None and step < self._before):
            return
        self.ahead_since = at
        if self._top is not None and self._before is not None:
            then, below = self._top
            self.ahead_since = then + (at - then) * (self._before - below) / (step - below)

    @property
    def highest(self) -> int | None:
        return self._top[1] if self._top else None

    @property
    def rose_at(self) -> float | None:
        """When the highest step of this attempt last rose."""
        return self._top[0] if self._top else None

    @property
    def per_second(self) -> float | None:
        if not self._points or self._top is None:
            return None
        (begun, first), (ended, last) = self._points[0], self._top
        return (last - first) / (ended - begun) if ended - begun >= SHORTEST_WINDOW else None

    @property
    def left(self) -> int | None:
        """Steps until the end; None if that is not known."""
        if self.step is None or self.total_steps is None:
            return None
        return max(0, self.total_steps - self.step)


def _valid(number: int | None, otherwise: int | None) -> int | None:
    return number if number is not None and 0 <= number <= MOST_STEPS else otherwise
