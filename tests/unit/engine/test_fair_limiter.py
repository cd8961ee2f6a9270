"""One limit for all jobs, and each job in turn."""

from __future__ import annotations

import asyncio

from paddlejob.engine.fair_limiter import FairLimiter


class Requests:
    """Requests that end when the test says so."""

    def __init__(self, most: int) -> None:
        self.limiter: FairLimiter[str] = FairLimiter(most)
        self.begun: list[str] = []
        self._ends: list[asyncio.Event] = []

    def send(self, key: str) -> asyncio.Task[None]:
        return asyncio.create_task(self._send(key))

    async def _send(self, key: str) -> None:
        async with self.limiter.hold(key):
            self.begun.append(key)
            ends = asyncio.Event()
            self._ends.append(ends)
            await ends.wait()

    async def end_one(self) -> None:
        self._ends.pop(0).set()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def finish(requests: Requests, tasks: list[asyncio.Task[None]]) -> None:
    while not all(task.done() for task in tasks):
        await requests.end_one()


async def test_no_more_than_the_limit_are_in_flight():
    requests = Requests(2)
    tasks = [requests.send("large") for _ in range(5)]
    await settle()
    assert len(requests.begun) == 2
    await requests.end_one()
    assert len(requests.begun) == 3
    await finish(requests, tasks)
    assert len(requests.begun) == 5


async def test_a_job_with_one_request_is_next_although_another_has_a_hundred_waiting():
    requests = Requests(2)
    tasks = [requests.send("large") for _ in range(100)]
    await settle()
    tasks.append(requests.send("small"))
    await settle()
    await requests.end_one()
    await requests.end_one()
    assert requests.begun == ["large", "large", "large", "small"]
    await finish(requests, tasks)


async def test_a_job_that_always_has_more_does_not_have_two_turns_in_a_row():
    requests = Requests(1)
    tasks = [requests.send(key) for key in ("a", "a", "a", "b", "b", "b")]
    await settle()
    await finish(requests, tasks)
    assert requests.begun == ["a", "a", "b", "a", "b", "b"]


async def test_a_request_that_is_cancelled_while_it_waits_takes_nothing_with_it():
    requests = Requests(1)
    first, waiting, last = requests.send("a"), requests.send("b"), requests.send("c")
    await settle()
    waiting.cancel()
    await settle()
    await finish(requests, [first, last])
    assert requests.begun == ["a", "c"]


async def test_a_request_that_is_cancelled_just_when_it_is_admitted_passes_its_turn_on():
    requests = Requests(1)
    first, admitted, last = requests.send("a"), requests.send("b"), requests.send("c")
    await settle()
    first.cancel()
    await asyncio.sleep(0)
    admitted.cancel()
    await settle()
    assert requests.begun in (["a", "c"], ["a", "b", "c"])
    await finish(requests, [last])
    again = requests.send("d")
    await settle()
    assert requests.begun[-1] == "d", "the limit is as it was"
    await finish(requests, [again])
