"""The jobs of one target as rows, kept for all pages that are open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from paddlejob.logs.series import SPARK_POINTS
from paddlejob.targets.target import Target
from paddlejob.targets.views import JobView
from paddlejob.web.views.row import Key, Row, row_of

WATCHED_SECONDS = 5.0
"""Somebody looks at the list if it was refreshed within this time."""
AGAIN_SECONDS = 5.0
"""How often the loss of a job that trains is read."""
BUDGET_SECONDS, PAUSE = 0.1, 0.3
"""Of reading losses, and of doing nothing after that, so that pages are served meanwhile."""


@dataclass(frozen=True)
class Description:
    """A target as the page shows it."""

    name: str
    """`local` or `cluster`, as in URLs."""
    title: str
    error: str = ""
    """Why its jobs may be out of date; empty while it answers."""
    namespace: str = ""
    """The only namespace that is shown; empty: all."""


class JobList:
    def __init__(self, target: Target, namespace: str = "") -> None:
        self.target = target
        self.namespace = namespace
        self._rows: dict[Key, tuple[JobView, Row]] = {}
        self._error = ""
        self._refreshed = 0.0
        self._sparks = Sparks(target)

    @property
    def name(self) -> str:
        return self.target.name

    def describe(self) -> Description:
        namespace = self.namespace or self.target.watched_namespace
        return Description(self.name, self.target.address, self._error or self.target.problem, namespace)

    async def run(self) -> None:
        """Read all jobs once, so that the first page does not wait for it; then keep them current until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.target.watch(self.namespace))
            await asyncio.sleep(0)
            await self.refresh()
            while True:
                if time.monotonic() - self._refreshed < WATCHED_SECONDS:
                    await self.sample()
                await asyncio.sleep(PAUSE)

    async def sample(self) -> None:
        """Active jobs first, then the newest."""
        rows = {key: row for key, (_, row) in self._rows.items()}
        order = sorted(rows, key=lambda key: (rows[key].ended is not None, -(rows[key].created or 0)))
        await self._sparks.sample({key: rows[key] for key in order})

    async def refresh(self) -> Mapping[Key, Row]:
        """The rows of all jobs, as of now, or as last seen. Rows of jobs that have not changed are the same objects."""
        self._refreshed = time.monotonic()
        try:
            views = await self.target.jobs(self.namespace or None)
            self._error = ""
        except OSError as error:
            self._error = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            return {key: row for key, (_, row) in self._rows.items()}
        before, self._rows = self._rows, {}
        for view in views:
            key = (view.job.namespace, view.job.name)
            seen, row = before.get(key) or (None, None)
            if row is None or seen is not view:
                row = row_of(self.name, view)
                self._sparks.note(key, row.loss)
            spark = self._sparks.get(key)
            self._rows[key] = (view, row if row.spark is spark else replace(row, spark=spark))
        for key in before.keys() - self._rows.keys():
            self._sparks.forget(key)
        return {key: row for key, (_, row) in self._rows.items()}


class Sparks:
    """The shape of each job's loss: what its record tells, else what its status has told while it was watched."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._sampled: dict[Key, tuple[float, ...]] = {}
        self._told: dict[Key, tuple[float, ...]] = {}
        self._due: dict[Key, float] = {}

    def get(self, key: Key) -> tuple[float, ...]:
        return self._sampled.get(key) or self._told.get(key, ())

    def note(self, key: Key, loss: float | str | None) -> None:
        """The job has changed."""
        self._due[key] = min(self._due.get(key, 0.0), time.monotonic() + AGAIN_SECONDS)
        told = self._told.get(key, ())
        if isinstance(loss, float) and told[-1:] != (loss,):
            self._told[key] = (*told, loss)[-SPARK_POINTS:]

    def forget(self, key: Key) -> None:
        self._sampled.pop(key, None)
        self._told.pop(key, None)
        self._due.pop(key, None)

    async def sample(self, rows: Mapping[Key, Row]) -> None:
        """Read the jobs that are due, in the order given, as far as the budget allows."""
        ends = time.monotonic() + BUDGET_SECONDS
        for key, row in rows.items():
            now = time.monotonic()
            if self._due.get(key, 0.0) > now:
                continue
            if now > ends:
                return
            if (found := await self._target.spark(*key)) is not None and found != self._sampled.get(key):
                self._sampled[key] = found
            self._due[key] = now + AGAIN_SECONDS if row.ended is None else float("inf")
