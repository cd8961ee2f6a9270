"""The keyed queue: every key once at a time, no event lost, storms coalesced."""

from __future__ import annotations

import asyncio
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from paddlejob.engine.queue import KeyedQueue

LONG = 30.0


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Running:
    """A queue at work inside `async with`, stopped at the end."""

    def __init__(self, queue: KeyedQueue[str], worker: Callable[[str], Awaitable[None]], concurrency: int = 4) -> None:
        self.queue = queue
        self.working = 0

        async def turn(key: str) -> None:
            self.working += 1
            try:
                await worker(key)
            finally:
                self.working -= 1

        self.task = asyncio.ensure_future(queue.run(turn, concurrency))

    @property
    def is_idle(self) -> bool:
        return self.queue.depth == 0 and not self.working

    async def __aenter__(self) -> Running:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.queue.stop()
        async with asyncio.timeout(LONG):
            await self.task


async def test_a_key_added_many_times_before_its_turn_has_one_turn() -> None:
    queue, seen = KeyedQueue[str](min_interval=0.0), list[str]()

    async def work(key: str) -> None:
        seen.append(key)

    for _ in range(10):
        queue.add("a")
    queue.add("b")
    assert queue.depth == 2
    async with Running(queue, work) as under_way:
        await until(lambda: under_way.is_idle)
    assert sorted(seen) == ["a", "b"]


async def test_a_key_is_never_worked_on_twice_at_once_and_an_add_in_between_is_not_lost() -> None:
    queue = KeyedQueue[str](min_interval=0.0)
    active, most, state, seen = Counter[str](), 0, 0, 0

    async def work(key: str) -> None:
        nonlocal most, seen
        active[key] += 1
        most = max(most, active[key])
        observed = state
        await asyncio.sleep(0.002)
        seen = max(seen, observed)
        active[key] -= 1

    async with Running(queue, work, concurrency=8) as under_way:
        for _ in range(200):
            state += 1
            queue.add("job")
            await asyncio.sleep(0.0005)
        await until(lambda: under_way.is_idle)
    assert most == 1
    assert seen == 200, "the last change must be seen by a turn that began after it"


async def test_different_keys_are_worked_on_at_the_same_time_up_to_the_limit() -> None:
    queue = KeyedQueue[str](min_interval=0.0)
    active = most = 0
    may_end = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await may_end.wait()
        active -= 1

    for number in range(10):
        queue.add(f"job-{number}")
    async with Running(queue, work, concurrency=3) as under_way:
        await until(lambda: active == 3)
        await asyncio.sleep(0.02)
        assert (most, queue.depth, under_way.working) == (3, 7, 3)
        may_end.set()
        await until(lambda: under_way.is_idle)
    assert most == 3


async def test_a_storm_of_events_costs_few_turns() -> None:
    queue, seen = KeyedQueue[str](min_interval=0.2), list[str]()

    async def work(key: str) -> None:
        seen.append(key)

    begun = time.monotonic()
    async with Running(queue, work) as under_way:
        for _ in range(100):
            queue.add("job")
            await asyncio.sleep(0.002)
        await until(lambda: under_way.is_idle)
    assert len(seen) <= 2 + (time.monotonic() - begun) / 0.2


async def test_of_several_times_the_earliest_wins() -> None:
    queue, seen = KeyedQueue[str](min_interval=0.0), list[float]()
    begun = time.monotonic()

    async def work(key: str) -> None:
        seen.append(time.monotonic() - begun)

    queue.add_after("job", 3600)
    queue.add_after("job", 0.05)
    queue.add_after("job", 1800)
    async with Running(queue, work):
        await until(lambda: bool(seen))
        assert seen[0] >= 0.05
        assert queue.depth == 0


async def test_an_earlier_key_wakes_a_queue_that_sleeps_for_a_later_one() -> None:
    queue, seen = KeyedQueue[str](min_interval=0.0), list[str]()

    async def work(key: str) -> None:
        seen.append(key)

    async with Running(queue, work):
        queue.add_after("late", 3600)
        await asyncio.sleep(0.02)
        queue.add("now")
        await until(lambda: seen == ["now"])


async def test_a_failing_key_comes_back_later_and_later_until_it_succeeds() -> None:
    faults: list[tuple[str, str]] = []
    queue = KeyedQueue[str](
        min_interval=0.0, first_backoff=0.02, on_failure=lambda key, error: faults.append((key, str(error)))
    )
    turns: list[float] = []

    async def work(key: str) -> None:
        turns.append(time.monotonic())
        if len(turns) < 5:
            raise ValueError(f"fault {len(turns)}")

    async with Running(queue, work) as under_way:
        queue.add("job")
        await until(lambda: len(turns) == 5 and not under_way.working)
        pauses = [later - earlier for earlier, later in pairwise(turns)]
        assert all(pause >= 0.01 * 2**n for n, pause in enumerate(pauses))
        assert faults == [("job", f"fault {n}") for n in range(1, 5)]

        queue.add("job")
        await until(lambda: len(turns) == 6)
        assert len(faults) == 4, "a success is not retried"


async def test_success_resets_the_backoff() -> None:
    queue = KeyedQueue[str](min_interval=0.0, first_backoff=0.01, longest_backoff=3600)
    plan = [True] * 6 + [False] + [True, False]
    turns: list[float] = []

    async def work(key: str) -> None:
        turns.append(time.monotonic())
        if plan[len(turns) - 1]:
            raise ValueError

    async with Running(queue, work):
        queue.add("job")
        await until(lambda: len(turns) == 7)
        queue.add("job")
        await until(lambda: len(turns) == 9)
    grown, after_reset = turns[6] - turns[5], turns[8] - turns[7]
    assert grown >= 0.01 * 2**5 / 2
    assert after_reset < grown


async def test_the_backoff_has_an_upper_bound() -> None:
    queue, seen = KeyedQueue[str](min_interval=0.0, first_backoff=0.001, longest_backoff=0.004), list[str]()

    async def work(key: str) -> None:
        seen.append(key)
        raise ValueError

    async with Running(queue, work):
        queue.add("job")
        await until(lambda: len(seen) > 40)


async def test_a_failing_key_does_not_hold_up_the_others() -> None:
    queue, seen = KeyedQueue[str](min_interval=0.0, first_backoff=3600, longest_backoff=3600), list[str]()

    async def work(key: str) -> None:
        if key == "bad":
            raise ValueError
        seen.append(key)

    async with Running(queue, work, concurrency=1):
        queue.add("bad")
        queue.add("good")
        await until(lambda: seen == ["good"])


async def test_stop_waits_for_running_turns_and_starts_no_others() -> None:
    queue, ended = KeyedQueue[str](min_interval=0.0), list[str]()
    begun = asyncio.Event()

    async def work(key: str) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        ended.append(key)

    queue.add("a")
    queue.add("b")
    task = asyncio.create_task(queue.run(work, concurrency=1))
    await begun.wait()
    queue.stop()
    await task
    assert ended == ["a"]
    assert queue.depth == 1


async def test_cancelling_the_run_cancels_the_turns_and_leaves_none_behind() -> None:
    queue, begun, cancelled = KeyedQueue[str](min_interval=0.0), list[str](), list[str]()

    async def work(key: str) -> None:
        begun.append(key)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(key)
            raise

    queue.add("a")
    queue.add("b")
    task = asyncio.create_task(queue.run(work, concurrency=2))
    await until(lambda: len(begun) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(cancelled) == ["a", "b"]


async def test_the_queue_keeps_no_memory_of_keys_that_are_done() -> None:
    queue, done = KeyedQueue[str](min_interval=0.01), 0

    async def work(key: str) -> None:
        nonlocal done
        done += 1
        if done % 10 == 0:
            await asyncio.sleep(0)

    tracemalloc.start()
    try:
        async with Running(queue, work) as under_way:
            before, _ = tracemalloc.get_traced_memory()
            for number in range(5000):
                queue.add(f"job-{number}")
            await until(lambda: under_way.is_idle)
            await asyncio.sleep(0.02)
            queue.add("last")
            await until(lambda: done == 5001)
            assert tracemalloc.get_traced_memory()[0] - before < 300_000
    finally:
        tracemalloc.stop()


async def test_seconds_of_waiting_and_working_are_observed() -> None:
    observed: list[tuple[float, float]] = []
    queue = KeyedQueue[str](min_interval=0.0, observe=lambda waited, worked: observed.append((waited, worked)))

    async def work(key: str) -> None:
        await asyncio.sleep(0.03)

    queue.add("job")
    await asyncio.sleep(0.03)
    async with Running(queue, work):
        await until(lambda: bool(observed))
    waited, worked = observed[0]
    assert waited >= 0.025
    assert worked >= 0.025


def test_requests_that_were_overtaken_do_not_pile_up():
    queue: KeyedQueue[str] = KeyedQueue()
    tracemalloc.start()
    try:
        for seconds in range(20_000, 0, -1):
            queue.add_after("job", seconds)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()
    assert queue.depth == 1


async def test_turns_keep_their_order_when_overtaken_requests_are_dropped():
    queue, turns, drawn = KeyedQueue[str](min_interval=0.0), list[str](), random.Random(7)
    earliest, latest = dict[str, float](), dict[str, float]()
    for sooner in range(640):
        key, seconds = f"job-{drawn.randrange(64)}", 0.001 * (drawn.randrange(300) + 640 - sooner)
        earliest[key] = min(time.monotonic() + seconds, earliest.get(key, LONG + time.monotonic()))
        queue.add_after(key, seconds)
        latest[key] = min(time.monotonic() + seconds, latest.get(key, LONG + time.monotonic()))

    async def work(key: str) -> None:
        turns.append(key)

    async with Running(queue, work, concurrency=1) as under_way:
        await until(lambda: under_way.is_idle)
    assert len(turns) == len(earliest)
    assert all(earliest[one] <= latest[following] for one, following in pairwise(turns))


async def test_it_is_crowded_while_a_key_waits_for_a_turn_in_progress():
    queue: KeyedQueue[str] = KeyedQueue(min_interval=0.0)
    ends = asyncio.Event()

    async def work(key: str) -> None:
        await ends.wait()

    running = asyncio.create_task(queue.run(work, concurrency=2))
    queue.add("a")
    await asyncio.sleep(0.01)
    queue.add("b")
    assert not queue.crowded, "there is a free turn for it"
    await asyncio.sleep(0.01)
    assert not queue.crowded, "nothing waits"
    queue.add_after("later", 60)
    assert not queue.crowded, "it is not due"
    queue.add("c")
    assert queue.crowded
    ends.set()
    await asyncio.sleep(0.01)
    assert not queue.crowded
    queue.stop()
    await running
