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
    """`highest` is the highest step of earlier attempts.

    A program may count steps within each epoch. That is seen when the step falls as the epoch rises, or when the
    highest step is beyond the last of an epoch. Steps are then counted through all epochs.
    """

    def __init__(self, highest: int | None) -> None:
        self.step: int | None = None
        self.total_steps: int | None = None
        self.epoch: int | None = None
        self.total_epochs: int | None = None
        self.rose_at: float | None = None
        """When the highest step of this attempt last rose."""
        self.ahead_since: float | None = None
        """When the attempt reached the highest step of those before it."""
        self._before = highest
        self._per_epoch: bool | None = None
        self._epoch_of_step: int | None = None
        self._top: tuple[float, int] | None = None
        self._points: deque[tuple[float, int]] = deque()

    def count(self, at: float, sample: Sample) -> None:
        self.epoch = _valid(sample.epoch, self.epoch)
        self.total_epochs = _valid(sample.total_epochs, self.total_epochs)
        step = _valid(sample.step, None)
        if step is None:
            return
        self.total_steps = _valid(sample.total_steps, self.total_steps)
        self._note_counting(step)
        self.step, self._epoch_of_step = step, self.epoch
        self._move(at, self._position(step))

    def _note_counting(self, step: int) -> None:
        """Notice whether steps are counted within each epoch; the epoch may be on a line of its own."""
        epoch, before = self.epoch, self._epoch_of_step
        if epoch is None or self._per_epoch:
            return
        if self._before is not None and self.total_steps is not None and self._before > self.total_steps:
            self._per_epoch = True
        elif self.step is not None and before is not None and epoch > before:
            self._per_epoch = step < self.step

    def _position(self, step: int) -> int:
        if self._per_epoch and self.epoch is not None and self.total_steps is not None:
            return self.epoch * self.total_steps + step
        return step

    def _move(self, at: float, position: int) -> None:
        if self._top is not None and position <= self._top[1]:
            return
        self._note_ahead(at, position)
        self._top = (at, position)
        self.rose_at = at
        if not self._points or at - self._points[-1][0] >= POINTS_APART:
            self._points.append((at, position))
        while at - self._points[0][0] > WINDOW and len(self._points) > 2:
            self._points.popleft()

    def _note_ahead(self, at: float, position: int) -> None:
        """Between two lines, the step is assumed to have risen evenly."""
        if self.ahead_since is not None or (self._before is not None and position < self._before):
            return
        self.ahead_since = at
        if self._top is not None and self._before is not None and position > self._before:
            then, below = self._top
            self.ahead_since = then + (at - then) * (self._before - below) / (position - below)

    @property
    def highest(self) -> int | None:
        return self._top[1] if self._top else None

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
        in_epoch = max(0, self.total_steps - self.step)
        if not self._per_epoch:
            whole = self._per_epoch is False or self.total_epochs in (None, 1)
            return in_epoch if whole else None
        if self.total_epochs is None or self.epoch is None:
            return None
        return max(0, self.total_epochs - self.epoch) * self.total_steps + in_epoch


def _valid(number: int | None, otherwise: int | None) -> int | None:
    return number if number is not None and 0 <= number <= MOST_STEPS else otherwise
