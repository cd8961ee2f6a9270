"""The loss of a job so far, in as many points as are kept."""

from __future__ import annotations

from collections.abc import Iterable

from paddlejob.api.types import ProgressSpec
from paddlejob.client.series import SeriesReader
from paddlejob.client.targets.target import LogLine

KEPT = 2000
"""Beyond, every second value is dropped; a terminal shows at most a few hundred."""


class Losses:
    def __init__(self, spec: ProgressSpec | None) -> None:
        self._reader = SeriesReader(spec)
        self._values: list[float] = []
        self._stride = 1
        self._skipped = 0

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(self._values)

    def read(self, lines: Iterable[LogLine]) -> None:
        for row in self._reader.rows(iter(lines)):
            if "loss" in row.sample.metrics:
                self.add(row.sample.metrics["loss"])

    def add(self, value: float) -> None:
        self._skipped += 1
        if self._skipped < self._stride:
            return
        self._skipped = 0
        self._values.append(value)
        if len(self._values) > KEPT:
            self._values, self._stride = self._values[::2], self._stride * 2
