"""The metrics that a job has logged, read once and continued where reading stopped; thinned out for a chart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from paddlejob.api.types import ProgressSpec
from paddlejob.client.series import COMMON, Row, SeriesReader
from paddlejob.client.targets.target import LogLine

MOST_POINTS = 400
"""Of a curve in a chart; more than a pixel each cannot be seen."""
KEPT_POINTS = 20_000
"""Of each metric in memory; beyond, every second point is dropped."""
SPARK_POINTS = 24
"""Of the small curve in the job list."""
MOST_METRICS = 40


@dataclass(frozen=True)
class Curve:
    """Points of one metric in one attempt."""

    attempt: int
    steps: list[float]
    values: list[float]


@dataclass(frozen=True)
class Series:
    metrics: dict[str, list[Curve]]
    axis: str = "step"
    """What the steps of the curves count: step, or epoch where the log tells no steps."""
    lines: int = 0
    """How many lines were read."""
    complete: bool = True
    """Whether the logs were read to their end; otherwise the next request continues."""


@dataclass
class _Points:
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    stride: int = 1
    _skipped: int = 0

    def add(self, step: float, value: float) -> None:
        self._skipped += 1
        if self._skipped < self.stride:
            return
        self._skipped = 0
        self.steps.append(step)
        self.values.append(value)
        if len(self.steps) > KEPT_POINTS:
            self.steps, self.values, self.stride = self.steps[::2], self.values[::2], self.stride * 2


class Collector:
    """Collects the points of a job from the lines of its first worker."""

    def __init__(self, spec: ProgressSpec | None) -> None:
        self._reader = SeriesReader(spec)
        self._points: dict[tuple[str, int], _Points] = {}
        self._position: dict[int, float] = {}
        """The last step of each attempt, or its last epoch while no step is known."""
        self._counted: set[int] = set()
        """Attempts whose log tells steps."""

    def add(self, lines: Iterable[LogLine]) -> None:
        for row in self._reader.rows(iter(lines)):
            self._add(row)

    def _add(self, row: Row) -> None:
        """A value without a step belongs to the last step of its attempt."""
        attempt, sample = row.line.attempt, row.sample
        if sample.step is not None:
            self._position[attempt] = sample.step
            self._counted.add(attempt)
        elif sample.epoch is not None and attempt not in self._counted:
            self._position[attempt] = sample.epoch
        for name, value in sample.metrics.items():
            key = (name, attempt)
            if key not in self._points and len({one for one, _ in self._points}) >= MOST_METRICS:
                continue
            points = self._points.setdefault(key, _Points())
            points.add(self._position.get(attempt, float(len(points.steps))), value)

    def series(self, complete: bool = True) -> Series:
        found: dict[str, list[Curve]] = {}
        names = sorted({name for name, _ in self._points}, key=lambda name: (_rank(name), name))
        for name in names:
            attempts = sorted(attempt for one, attempt in self._points if one == name)
            found[name] = [_curve(attempt, self._points[name, attempt]) for attempt in attempts]
        axis = "epoch" if self._position and not self._counted else "step"
        return Series(found, axis, self._reader.lines, complete)


def _rank(name: str) -> int:
    return COMMON.index(name) if name in COMMON else len(COMMON)


def _curve(attempt: int, points: _Points) -> Curve:
    chosen = thinned(points.values, MOST_POINTS)
    return Curve(attempt, [points.steps[one] for one in chosen], [points.values[one] for one in chosen])


def thinned(values: list[float], most: int) -> list[int]:
    """Indexes of at most about `most` points: the lowest and highest of each stretch, and the newest."""
    if len(values) <= most:
        return list(range(len(values)))
    size = math.ceil(len(values) / (most // 2))
    found = []
    for start in range(0, len(values), size):
        stretch = range(start, min(start + size, len(values)))
        low, high = min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)
        found += sorted({low, high})
    return found if found[-1] == len(values) - 1 else [*found, len(values) - 1]
