"""A work queue: each key is queued once, processed by one worker at a time, and retried later after a failure."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from paddlejob.delays import exponential_delay

K = TypeVar("K", bound=Hashable)

FIRST_BACKOFF = 0.05
LONGEST_BACKOFF = 60.0
FEW = 64


class KeyedQueue(Generic[K]):
    """A key added several times before its turn has one turn; one added during its turn has another after it.

    Turns of a key begin at least `min_interval` seconds after the last one ended, so that many events cost few turns.
    After a turn that raised, `on_failure(key, error)` is called, and the next turn follows after an exponential backoff
    with jitter. `observe(waited, worked)` gets the seconds of each turn, for metrics.
    """

    def __init__(
        self,
        *,
        min_interval: float = 0.1,
        first_backoff: float = FIRST_BACKOFF,
        longest_backoff: float = LONGEST_BACKOFF,
        on_failure: Callable[[K, Exception], None] = lambda key, error: None,
        observe: Callable[[float, float], None] = lambda waited, worked: None,
    ) -> None:
        self._min_interval = min_interval
        self._first_backoff = first_backoff
        self._longest_backoff = longest_backoff
        self._on_failure = on_failure
        self._observe = observe
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._not_before: dict[K, float] = {}
        self._intervals: deque[tuple[float, K]] = deque()
        self._concurrency = 1
        self._changed = asyncio.Event()
        self._stopped = False

    @property
    def depth(self) -> int:
        """How many keys are waiting, due or not."""
        return len(self._due)

    @property
    def crowded(self) -> bool:
        """Whether a key is due and waits for one of the turns in progress to end."""
        if len(self._working) < self._concurrency:
            return False
        self._drop_stale()
        return bool(self._heap) and self._heap[0][0] <= time.monotonic()

    def add(self, key: K) -> None:
        """Process the key as soon as possible."""
        self.add_after(key, 0.0)

    def add_after(self, key: K, seconds: float) -> None:
        """Process the key in `seconds`, or earlier if it is already queued for an earlier time."""
        self._ask(key, time.monotonic() + max(0.0, seconds))

    async def run(self, worker: Callable[[K], Awaitable[None]], concurrency: int) -> None:
        """Process keys until `stop()`, at most `concurrency` at a time. Cancelling it cancels the turns in progress."""
        free = asyncio.Semaphore(concurrency)
        self._concurrency = concurrency
        async with asyncio.TaskGroup() as turns:
            while True:
                await free.acquire()
                chosen = await self._next()
                if chosen is None:
                    return
                turn = turns.create_task(self._turn(*chosen, worker))
                turn.add_done_callback(lambda _: free.release())

    def stop(self) -> None:
        """Start no further turn; `run` returns when those in progress have ended."""
        self._stopped = True
        self._changed.set()

    def _ask(self, key: K, due: float) -> None:
        due = max(due, self._not_before.get(key, 0.0))
        if due >= self._due.get(key, due + 1):
            return
        self._due[key] = due
        # A key that is being processed is pushed when its turn ends.
        if key not in self._working:
            self._push(key, due)

    def _push(self, key: K, due: float) -> None:
        if len(self._heap) > 2 * len(self._due) + FEW:
            self._heap = [asked for asked in self._heap if not self._is_stale(asked)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._changed.set()

    async def _next(self) -> tuple[K, float] | None:
        """Wait for a key that is due and mark it as being processed; None once stopped."""
        while not self._stopped:
            now = time.monotonic()
            self._end_intervals(now)
            self._drop_stale()
            if self._heap and self._heap[0][0] <= now:
                key = heapq.heappop(self._heap)[2]
                self._working.add(key)
                return key, self._due.pop(key)
            await self._wait(self._heap[0][0] - now if self._heap else None)
        return None

    def _drop_stale(self) -> None:
        while self._heap and self._is_stale(self._heap[0]):
            heapq.heappop(self._heap)

    def _is_stale(self, asked: tuple[float, int, K]) -> bool:
        """Whether the key was queued for an earlier time since, or processed meanwhile."""
        due, _, key = asked
        return self._due.get(key) != due

    async def _wait(self, seconds: float | None) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _turn(self, key: K, due: float, worker: Callable[[K], Awaitable[None]]) -> None:
        begun = time.monotonic()
        try:
            await worker(key)
            self._failures.pop(key, None)
        except Exception as error:
            self._retry(key, error)
        finally:
            ended = time.monotonic()
            self._observe(begun - due, ended - begun)
            self._end_turn(key, ended)

    def _retry(self, key: K, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        grown = exponential_delay(failures, self._first_backoff, self._longest_backoff)
        self._ask(key, time.monotonic() + grown * random.uniform(0.5, 1.0))
        self._on_failure(key, error)

    def _end_turn(self, key: K, now: float) -> None:
        self._working.discard(key)
        self._not_before[key] = now + self._min_interval
        self._intervals.append((now + self._min_interval, key))
        if key in self._due:
            self._due[key] = max(self._due[key], now + self._min_interval)
            self._push(key, self._due[key])

    def _end_intervals(self, now: float) -> None:
        while self._intervals and self._intervals[0][0] <= now:
            until, key = self._intervals.popleft()
            if self._not_before.get(key) == until:
                del self._not_before[key]
