"""Follows the logs of all jobs of the engine, beside their turns, and hands the readings to the backend."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from paddlejob.engine.backend import Key
from paddlejob.local.backend import LocalBackend
from paddlejob.local.engine_error import log_error
from paddlejob.local.log_reader import LogReader
from paddlejob.local.state.log_times import LogTimes
from paddlejob.plan.world import LogReading

LOOK_EVERY = 1.0


class LogWatch:
    def __init__(
        self, backend: LocalBackend, clock: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._monotonic = monotonic
        self._readers: dict[Key, LogReader] = {}
        self._failed: set[Key] = set()
        self._times = LogTimes()

    def read(self, key: Key) -> None:
        """Before a turn: the last lines of a worker that has just ended count too."""
        reader = self._reader(key)
        if reader is not None:
            try:
                self._keep(key, reader.read())
            except Exception as error:
                self._on_error(key, error)

    async def run(self, on_news: Callable[[Key], None]) -> None:
        """Look at every job each second; `on_news(key)` is called when the reading of a job has changed."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for key in self._readers.keys() - self._backend.kubelets.keys():
                self._times.forget(self._readers.pop(key).kubelet.objects.folder)
                self._backend.readings.pop(key, None)
            for key, kubelet in list(self._backend.kubelets.items()):
                self._times.record(kubelet.objects.folder, self._clock())
                if await self._look(key):
                    on_news(key)

    async def _look(self, key: Key) -> bool:
        reader = self._reader(key)
        before = self._backend.readings.get(key)
        try:
            self._keep(key, await reader.look() if reader else None)
        except Exception as error:
            self._on_error(key, error)
        changed = _without_silence(before) != _without_silence(self._backend.readings.get(key))
        return changed or (reader is not None and reader.hangs)

    def _reader(self, key: Key) -> LogReader | None:
        kubelet = self._backend.kubelets.get(key)
        if kubelet is None:
            return None
        known = self._readers.get(key)
        if known is None or known.kubelet is not kubelet:
            known = self._readers[key] = LogReader(kubelet, self._clock, self._monotonic)
        return known

    def _on_error(self, key: Key, error: Exception) -> None:
        """A job trains on without progress. If its files are damaged, its turns report that."""
        if key not in self._failed:
            log_error(error, f"{key[0]}/{key[1]}: its log cannot be read")
        self._failed.add(key)

    def _keep(self, key: Key, reading: LogReading | None) -> None:
        if reading is None:
            self._backend.readings.pop(key, None)
        else:
            self._backend.readings[key] = reading


def _without_silence(reading: LogReading | None) -> LogReading | None:
    """It grows with every look."""
    return replace(reading, silent_seconds=None) if reading else None
