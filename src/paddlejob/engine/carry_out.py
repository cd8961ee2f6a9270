"""Carrying out a plan's actions: in order, but many of one kind at once, in growing batches.

The first of a kind goes alone: if it is refused (a quota, a bad image name), a thousand others are not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby

from paddlejob.plan import Action, Create

MOST_IN_FLIGHT = 32


async def carry_out(actions: Iterable[Action], perform: Callable[[Action], Awaitable[None]]) -> None:
    """Perform all; the first error ends it after the batch that it happened in."""
    for _, run in groupby(actions, key=_sort):
        for batch in batches(list(run)):
            if len(batch) == 1:
                await perform(batch[0])
                continue
            results = await asyncio.gather(*(perform(action) for action in batch), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result


def batches(actions: list[Action]) -> Iterator[list[Action]]:
    start, size = 0, 1
    while start < len(actions):
        yield actions[start : start + size]
        start, size = start + size, min(size * 2, MOST_IN_FLIGHT)


def _sort(action: Action) -> str:
    return f"create {action.kind}" if isinstance(action, Create) else type(action).__name__
