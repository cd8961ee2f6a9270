"""The job lists of all targets, refreshed while somebody watches, and what has changed since a revision."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from paddlejob.web.job_list import Description, JobList
from paddlejob.web.views.row import Row

PAUSE = 0.4
"""A change is visible within this time and what reading takes; the promise is one second."""
HEARTBEAT = 15.0
"""Without changes a stream says that it is alive, so that the server notices a browser that is gone."""
JobKey = tuple[str, str, str]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Changes:
    revision: int
    rows: list[Row]
    removed: list[JobKey]
    targets: list[Description]


class Feed:
    def __init__(self, lists: Sequence[JobList]) -> None:
        self.lists = {jobs.name: jobs for jobs in lists}
        self.revision = 0
        self.watchers = 0
        self._rows: dict[JobKey, tuple[int, Row]] = {}
        self._removed: dict[JobKey, int] = {}
        self._targets: tuple[int, list[Description]] = (0, [])
        self._refreshed = 0.0
        self._lock = asyncio.Lock()

    async def changes(self, since: int) -> Changes:
        """What has changed after a revision; since 0, all jobs."""
        await self.refresh()
        return Changes(
            revision=self.revision,
            rows=[row for revision, row in self._rows.values() if revision > since],
            removed=[key for key, revision in self._removed.items() if revision > since] if since else [],
            targets=self._targets[1] if self._targets[0] > since else [],
        )

    async def follow(self, since: int) -> AsyncIterator[Changes | None]:
        """Changes as they happen; None every few seconds without any."""
        self.watchers += 1
        said = time.monotonic()
        try:
            while True:
                await asyncio.sleep(PAUSE)
                found = await self.changes(since)
                if found.revision > since:
                    since, said = found.revision, time.monotonic()
                    yield found
                elif time.monotonic() - said > HEARTBEAT:
                    said = time.monotonic()
                    yield None
        finally:
            self.watchers -= 1

    async def refresh(self) -> None:
        """Once for all who watch at the same time."""
        async with self._lock:
            if time.monotonic() - self._refreshed < PAUSE / 2:
                return
            for jobs in self.lists.values():
                rows = await jobs.refresh()
                self._merge(jobs.name, {(jobs.name, *key): row for key, row in rows.items()})
            described = [jobs.describe() for jobs in self.lists.values()]
            if described != self._targets[1]:
                self.revision += 1
                self._targets = (self.revision, described)
            self._refreshed = time.monotonic()

    def _merge(self, target: str, rows: dict[JobKey, Row]) -> None:
        known = {key: row for key, (_, row) in self._rows.items() if key[0] == target}
        changed = [key for key, row in rows.items() if known.get(key) is not row and known.get(key) != row]
        gone = [key for key in known if key not in rows]
        if not changed and not gone:
            return
        self.revision += 1
        for key in changed:
            self._rows[key] = (self.revision, rows[key])
            self._removed.pop(key, None)
        for key in gone:
            del self._rows[key]
            self._removed[key] = self.revision
