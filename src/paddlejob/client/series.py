"""The metrics that a job has logged, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paddlejob.api.progress_pattern import GROUP
from paddlejob.api.types import ProgressSpec
from paddlejob.client.targets.target import LogLine
from paddlejob.plan import times
from paddlejob.progress import Parser, Sample
from paddlejob.progress.text import REDRAW

POSITIONS = ("step", "total_steps", "epoch", "total_epochs", "checkpoint")
COMMON = ("loss", "learning_rate", "samples_per_second")


@dataclass(frozen=True)
class Row:
    line: LogLine
    sample: Sample

    def cell(self, name: str) -> int | float | str | None:
        """A number, or text where JSON has no number; None if the line does not tell."""
        match name:
            case "time":
                return None if self.line.time is None else times.format(self.line.time)
            case "attempt":
                return self.line.attempt
            case _ if name in POSITIONS:
                position: int | None = getattr(self.sample, name)
                return position
        return self.sample.non_finite.get(name, self.sample.metrics.get(name))


class SeriesReader:
    """Reads rows from the lines of a log, with a parser for each attempt."""

    def __init__(self, spec: ProgressSpec | None) -> None:
        self.spec = spec or ProgressSpec()
        self.lines = 0
        """How many lines were read."""
        self._parsers: dict[int, Parser] = {}

    @property
    def names(self) -> list[str]:
        """The columns, known before the first row is."""
        metrics: tuple[str, ...] = (*COMMON, *self.spec.metrics)
        if self.spec.pattern is not None:
            metrics = tuple(name for name in GROUP.findall(self.spec.pattern) if name not in POSITIONS)
        return list(dict.fromkeys(["time", "attempt", *POSITIONS, *metrics]))

    def rows(self, lines: Iterator[LogLine]) -> Iterator[Row]:
        for line in lines:
            self.lines += 1
            parser = self._parsers.setdefault(line.attempt, Parser(self.spec))
            for state in _states(line.text):
                sample = parser.parse(state)
                if sample and _tells_something(sample):
                    yield Row(line, sample)


def _states(text: str) -> list[str]:
    """Of a progress bar that rewrites itself, everything that it showed."""
    return [state for state in REDRAW.split(text.rstrip("\r\n")) if state.strip()]


def _tells_something(sample: Sample) -> bool:
    return bool(sample.has_position or sample.metrics or sample.non_finite or sample.checkpoint is not None)
