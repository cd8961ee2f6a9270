"""What a real API server stored, in its own order: changes of objects as a watch delivers them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Any

from paddlejob.kube.client import Client
from paddlejob.kube.resource import Resource

Object = dict[str, Any]
PATIENCE = 90.0


@total_ordering
@dataclass(frozen=True, eq=False)
class Change:
    """One change. Versions come from one counter of the whole server, so they tell which of two was first."""

    type: str
    object: Object
    at: float
    """When it was seen."""

    @property
    def version(self) -> int:
        return int(self.object["metadata"]["resourceVersion"])

    def __lt__(self, other: Change) -> bool:
        return self.version < other.version


@dataclass
class Changes:
    seen: list[Change] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, change: Change) -> None:
        self.seen.append(change)
        self._news.set()

    async def first(self, matches: Callable[[Object], bool], after: Change | None = None) -> Change:
        """The first change to an object that matches, after another change if one is given."""
        return (await self._until(lambda: self._matching(matches, after, "")))[0]

    async def last(self, matches: Callable[[Object], bool], count: int, type_: str = "") -> Change:
        """The change by which the last of `count` objects first matched."""
        return (await self._until(lambda: self._matching(matches, None, type_), count))[count - 1]

    def _matching(self, matches: Callable[[Object], bool], after: Change | None, type_: str) -> list[Change]:
        """The first change of each object that matches."""
        found: dict[str, Change] = {}
        for change in self.seen:
            if type_ in ("", change.type) and (after is None or after < change) and matches(change.object):
                found.setdefault(change.object["metadata"]["name"], change)
        return sorted(found.values())

    async def _until(self, look: Callable[[], list[Change]], count: int = 1) -> list[Change]:
        async with asyncio.timeout(PATIENCE):
            while len(found := look()) < count:
                self._news.clear()
                await self._news.wait()
        return found


@asynccontextmanager
async def changes(client: Client, resource: Resource, namespace: str) -> AsyncIterator[Changes]:
    """All changes to objects of a namespace from now on."""
    page = [page async for page in client.pages(resource, namespace)][-1]
    found = Changes()

    async def follow() -> None:
        async with aclosing(client.watch(resource, namespace, version=page.version)) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    found.add(Change(event.type, event.object, time.monotonic()))

    task = asyncio.create_task(follow())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
