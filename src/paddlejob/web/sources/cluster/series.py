"""The metrics of jobs on a cluster: while a page shows a job, the log of its first worker is followed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from paddlejob.client.targets.first_worker_pod import read_first_worker
from paddlejob.client.targets.logs import is_inactive
from paddlejob.client.targets.target import JobView, LogLine
from paddlejob.errors import PaddleJobError
from paddlejob.kube.client import Client
from paddlejob.web.views.series import Collector, Series

KEPT = 20
FIRST_SECONDS = 1.0
"""How long the first reader waits for what the log holds already."""


@dataclass
class _Reading:
    uid: str
    collector: Collector
    task: asyncio.Task[None]


class SeriesTasks:
    """One task for each of the jobs that were looked at last."""

    def __init__(self) -> None:
        self._readings: OrderedDict[tuple[str, str], _Reading] = OrderedDict()

    async def read(self, client: Client, view: JobView) -> Series:
        key, uid = (view.job.namespace, view.job.name), view.job.metadata.uid
        reading = self._readings.get(key)
        active = not is_inactive(view.job)
        if reading is None or reading.uid != uid or (active and reading.task.done()):
            self._forget(key)
            collector = Collector(view.job.spec.progress)
            task = asyncio.create_task(_collect(read_first_worker(client, *key, follow=True), collector))
            reading = self._readings[key] = _Reading(uid, collector, task)
            await asyncio.wait({task}, timeout=FIRST_SECONDS)
        self._readings.move_to_end(key)
        while len(self._readings) > KEPT:
            self._forget(next(iter(self._readings)))
        return reading.collector.series()

    def _forget(self, key: tuple[str, str]) -> None:
        if reading := self._readings.pop(key, None):
            reading.task.cancel()

    def close(self) -> None:
        for key in list(self._readings):
            self._forget(key)


async def _collect(lines: AsyncIterator[LogLine], collector: Collector) -> None:
    """Until the job ends, or its log cannot be read; the page shows what there is, and why the job does not run."""
    try:
        async with aclosing(lines) as opened:  # type: ignore[type-var]
            async for line in opened:
                collector.add([line])
    except PaddleJobError:
        return
