"""Follows the logs of all jobs of the engine, beside their turns, and gives each its reading."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from paddlejob.engine.backend import Key
from paddlejob.local.engine_error import log_error
from paddlejob.local.job import JobRegistry, LocalJob
from paddlejob.local.log_reader import LogReader
from paddlejob.logs.times import LogTimes
from paddlejob.plan.world import LogReading

LOOK_EVERY = 1.0


class LogWatch:
    def __init__(
        self, jobs: JobRegistry, clock: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs = jobs
        self._clock = clock
        self._monotonic = monotonic
        self._readers: dict[Key, LogReader] = {}
        self._failed: set[Key] = set()
        self._times = LogTimes()

    def read(self, job: LocalJob) -> None:
        """Before a turn: the last lines of a worker that has just ended count too."""
        try:
            job.reading = self._reader(job).read()
        except Exception as error:
            self._on_error(job.key, error)

    async def run(self, on_news: Callable[[Key], None]) -> None:
        """Look at every job each second; `on_news(key)` is called when the reading of a job has changed."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for key in self._readers.keys() - {job.key for job in self._jobs}:
                self._times.forget(self._readers.pop(key).job.folder.path)
            for job in self._jobs:
                self._times.record(job.folder.path, self._clock())
                if await self._look(job):
                    on_news(job.key)

    async def _look(self, job: LocalJob) -> bool:
        reader = self._reader(job)
        before, quiet = job.reading, reader.quiet
        try:
            job.reading = await reader.look()
        except Exception as error:
            self._on_error(job.key, error)
        return _without_silence(before) != _without_silence(job.reading) or reader.hangs or reader.quiet != quiet

    def _reader(self, job: LocalJob) -> LogReader:
        known = self._readers.get(job.key)
        if known is None or known.job is not job:
            known = self._readers[job.key] = LogReader(job, self._clock, self._monotonic)
        return known

    def _on_error(self, key: Key, error: Exception) -> None:
        """A job trains on without progress. If its files are damaged, its turns report that."""
        if key not in self._failed:
            log_error(error, f"{key[0]}/{key[1]}: its log cannot be read")
        self._failed.add(key)


def _without_silence(reading: LogReading | None) -> LogReading | None:
    """It grows with every look."""
    return replace(reading, silent_seconds=None) if reading else None
