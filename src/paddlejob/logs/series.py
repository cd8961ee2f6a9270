"""What a job has logged about its progress: samples with their times, and curves of few points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from paddlejob.api.progress_pattern import GROUP
from paddlejob.api.types import ProgressSpec
from paddlejob.logs.line import LogLine
from paddlejob.plan import times
from paddlejob.progress import Parser, Sample
from paddlejob.text import REDRAW

POSITIONS = ("step", "total_steps", "epoch", "total_epochs", "checkpoint")
COMMON = ("loss", "learning_rate", "samples_per_second")
MOST_POINTS = 400
"""Of a curve in a chart; more than a pixel each cannot be seen."""
KEPT_POINTS = 20_000
"""Of each metric in memory; beyond, every second point is dropped."""
SPARK_POINTS = 24
"""Of the small curve in the job list."""
MOST_METRICS = 40


@dataclass(frozen=True, slots=True)
class LoggedSample:
    attempt: int
    time: float | None
    """When it was printed, where that is known."""
    sample: Sample

    def cell(self, name: str) -> int | float | str | None:
        """A number, or text where JSON has no number; None if the line does not tell."""
        match name:
            case "time":
                return None if self.time is None else times.format(self.time)
            case "attempt":
                return self.attempt
            case _ if name in POSITIONS:
                position: int | None = getattr(self.sample, name)
                return position
        return self.sample.non_finite.get(name, self.sample.metrics.get(name))


def columns_of(spec: ProgressSpec | None) -> list[str]:
    """The names of the cells, known before the first sample is."""
    spec = spec or ProgressSpec()
    metrics: tuple[str, ...] = (*COMMON, *spec.metrics)
    if spec.pattern is not None:
        metrics = tuple(name for name in GROUP.findall(spec.pattern) if name not in POSITIONS)
    return list(dict.fromkeys(["time", "attempt", *POSITIONS, *metrics]))


class LineParser:
    """Parses the lines of a job's first worker, with a parser for each attempt."""

    def __init__(self, spec: ProgressSpec | None) -> None:
        self._spec = spec
        self._parsers: dict[int, Parser] = {}

    def samples(self, lines: Iterable[LogLine]) -> Iterator[LoggedSample]:
        for line in lines:
            parser = self._parsers.setdefault(line.attempt, Parser(self._spec))
            for state in REDRAW.split(line.text):
                sample = parser.parse(state) if state.strip() else None
                if sample and sample.tells_something:
                    yield LoggedSample(line.attempt, line.time, sample)


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

    @property
    def losses(self) -> tuple[float, ...]:
        """Of all attempts, in order."""
        return tuple(value for curve in self.metrics.get("loss", []) for value in curve.values)


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
    """Collects the points of a job's curves."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._points: dict[tuple[str, int], _Points] = {}
        self._position: dict[int, float] = {}
        """The last step of each attempt, or its last epoch while no step is known."""
        self._counted: set[int] = set()
        """Attempts whose log tells steps."""

    def add(self, samples: Iterable[LoggedSample]) -> None:
        for one in samples:
            self._add(one.attempt, one.sample)

    def _add(self, attempt: int, sample: Sample) -> None:
        """A value without a step belongs to the last step of its attempt."""
        if sample.step is not None:
            self._position[attempt] = sample.step
            self._counted.add(attempt)
        elif sample.epoch is not None and attempt not in self._counted:
            self._position[attempt] = sample.epoch
        for name, value in sample.metrics.items():
            if name not in self._names and len(self._names) >= MOST_METRICS:
                continue
            self._names.add(name)
            points = self._points.setdefault((name, attempt), _Points())
            points.add(self._position.get(attempt, float(len(points.steps))), value)

    def series(self) -> Series:
        found: dict[str, list[Curve]] = {}
        for name in sorted(self._names, key=lambda name: (_rank(name), name)):
            attempts = sorted(attempt for one, attempt in self._points if one == name)
            found[name] = [_curve(attempt, self._points[name, attempt]) for attempt in attempts]
        return Series(found, "epoch" if self._position and not self._counted else "step")


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
