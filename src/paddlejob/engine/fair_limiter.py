"""A limit on requests in flight that all jobs share: when one ends, the next job in turn sends one of its own."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class FairLimiter(Generic[K]):
    """At most `most` holders at a time. A key that has many waiting delays another key by one of them, not by all."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: OrderedDict[K, deque[asyncio.Future[None]]] = OrderedDict()
        """By key, in the order in which the keys have their turn."""

    @asynccontextmanager
    async def hold(self, key: K) -> AsyncIterator[None]:
        await self._acquire(key)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, key: K) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        admitted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(admitted)
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            key, queue = self._waiting.popitem(last=False)
            admitted = queue.popleft()
            if queue:
                self._waiting[key] = queue
            if not admitted.done():
                admitted.set_result(None)
                return
        self._free += 1
