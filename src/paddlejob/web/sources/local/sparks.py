"""The shape of each job's loss for the job list, from samples of its logs: a whole log may have gigabytes."""

from __future__ import annotations

import time
from pathlib import Path

from paddlejob.api.types import ProgressSpec
from paddlejob.client.series import SeriesReader
from paddlejob.client.targets.first_worker_file import log_files
from paddlejob.client.targets.target import LogLine
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.store import JobFolder
from paddlejob.web.views.row import Key
from paddlejob.web.views.series import SPARK_POINTS, thinned

BLOCK = 4096
"""About 50 lines; one of them has the loss, unless a program prints it rarely."""
AGAIN_SECONDS = 5.0
"""How often a log that grows is sampled."""
BUDGET_SECONDS = 0.1
"""At a time, so that pages are served meanwhile; 500 jobs are sampled within a minute."""
Sizes = tuple[int, ...]
NONE: tuple[float, ...] = ()


class Sparks:
    """Remembers the samples of each job until its logs have changed."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Sizes, tuple[float, ...]]] = {}
        self._due: dict[Key, float] = {}

    def get(self, key: Key) -> tuple[float, ...]:
        return self._known[key][1] if key in self._known else NONE

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)
        self._due.pop(key, None)

    def update(self, folders: dict[Key, JobFolder], active: set[Key]) -> None:
        """Sample the jobs that are due, active ones first, as far as the budget allows."""
        ends = time.monotonic() + BUDGET_SECONDS
        for key in sorted((key for key in folders if self._is_due(key)), key=lambda key: key not in active):
            if time.monotonic() > ends:
                return
            self._sample(key, folders[key])
            self._due[key] = time.monotonic() + AGAIN_SECONDS if key in active else float("inf")

    def expire(self, key: Key) -> None:
        """Sample the job again: its files have changed."""
        self._due[key] = min(self._due.get(key, 0.0), time.monotonic() + AGAIN_SECONDS)

    def _is_due(self, key: Key) -> bool:
        return self._due.get(key, 0.0) <= time.monotonic()

    def _sample(self, key: Key, folder: JobFolder) -> None:
        try:
            logs = log_files(folder)
            sizes = tuple(path.stat().st_size for path in logs.values())
            if key in self._known and self._known[key][0] == sizes:
                return
            job = folder.job()
            self._known[key] = (sizes, sampled_losses(logs, job.spec.progress if job else None))
        except (OSError, DamagedFile):
            return


def sampled_losses(logs: dict[int, Path], spec: ProgressSpec | None) -> tuple[float, ...]:
    """Losses of all attempts in order; of large logs, from blocks that lie evenly apart."""
    total = sum(path.stat().st_size for path in logs.values())
    values: list[float] = []
    for attempt, path in logs.items():
        size = path.stat().st_size
        count = max(1, round(SPARK_POINTS * size / max(1, total)))
        reader = SeriesReader(spec)
        for block in _blocks(path, size, count):
            lines = [LogLine(attempt, text) for text in block.decode(errors="replace").splitlines()]
            found = [row.sample.metrics["loss"] for row in reader.rows(iter(lines)) if "loss" in row.sample.metrics]
            values += found if size <= count * BLOCK else found[-1:]
    return tuple(values[index] for index in thinned(values, SPARK_POINTS))


def _blocks(path: Path, size: int, count: int) -> list[bytes]:
    """Whole lines of blocks that lie evenly apart, the last of them at the end; of a small file, all of it."""
    with path.open("rb") as file:
        if size <= count * BLOCK:
            return [file.read(count * BLOCK)]
        found = []
        for number in range(count):
            file.seek(int((size - BLOCK) * (number + 1) / count))
            found.append(file.read(BLOCK).partition(b"\n")[2].rpartition(b"\n")[0])
        return found
