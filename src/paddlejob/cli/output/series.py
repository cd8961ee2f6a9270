"""The metrics that a job has logged, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paddlejob.api.progress_pattern import GROUP
from paddlejob.api.types import ProgressSpec
from paddlejob.cli.output.tables import columns
from paddlejob.cli.targets.target import LogLine
from paddlejob.plan import times
from paddlejob.progress import Parser, Sample

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
            sample = parser.parse(line.text)
            if sample and (sample.has_position or sample.metrics or sample.non_finite or sample.checkpoint is not None):
                yield Row(line, sample)


def as_table(rows: list[Row], names: list[str]) -> str:
    """Without columns that are empty; a total is shown behind its position."""
    shown = [name for name in names if not name.startswith("total_") and any(_shown(row, name) for row in rows)]
    return columns([name.upper() for name in shown], [[_shown(row, name) for name in shown] for row in rows])


def csv_line(values: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["" if value is None else value for value in values])
    return text.getvalue()


def json_object(row: Row, names: list[str]) -> dict[str, Any]:
    """Only what the line tells. nan and inf are text, because JSON has no such numbers."""
    return {name: value for name in names if (value := row.cell(name)) is not None}


def json_line(row: Row, names: list[str]) -> str:
    return json.dumps(json_object(row, names), ensure_ascii=False) + "\n"


def _shown(row: Row, name: str) -> str:
    value = row.cell(name)
    total = row.cell(f"total_{name}s") if name in ("step", "epoch") else None
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else f"{value}/{total}" if total is not None else str(value)
