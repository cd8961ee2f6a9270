"""Asynchronous code for callers that are not, also where an event loop runs already, as in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from paddlejob.targets.sync import iterate, run_outside_loop


class Numbers:
    """A stream that records whether it was closed."""

    def __init__(self, helpers: int = 0) -> None:
        self.closed = False
        self.tasks: list[asyncio.Task[None]] = []
        self.helpers = helpers

    async def stream(self) -> AsyncGenerator[int, None]:
        self.tasks = [asyncio.create_task(asyncio.sleep(300)) for _ in range(self.helpers)]
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield number
        finally:
            self.closed = True


def read(numbers: Numbers, most: int = 9) -> list[int]:
    found = []
    for number in iterate(numbers.stream()):
        found.append(number)
        if len(found) == most:
            break
    return found


@pytest.mark.parametrize("helpers", [0, 2])
@pytest.mark.parametrize("most", [2, 9])
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_stream_is_read_and_closed_and_no_task_is_left(in_a_loop: bool, most: int, helpers: int):
    async def notebook() -> list[int]:
        return read(numbers, most)

    numbers = Numbers(helpers)
    assert (asyncio.run(notebook()) if in_a_loop else read(numbers, most)) == [0, 1, 2][:most]
    assert numbers.closed
    assert all(task.done() for task in numbers.tasks)


def test_a_result_is_awaited_in_a_loop_and_without_one():
    async def answer() -> int:
        return 42

    async def notebook() -> int:
        return run_outside_loop(answer())

    assert run_outside_loop(answer()) == asyncio.run(notebook()) == 42
