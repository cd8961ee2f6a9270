"""Carrying out a plan's actions: in order, but many of one kind at once.

The first of a kind goes alone: if it is refused (a quota, a bad image name), a thousand others are not tried. Each
success lets one more be under way, so 1, 2, 4 ... up to 32 are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby

from paddlejob.plan import Action, Create

MOST_IN_FLIGHT = 32
Perform = Callable[[Action], Awaitable[None]]


async def carry_out(actions: Iterable[Action], perform: Perform) -> None:
    """Perform all. After an error no other is begun; it is raised when those under way have ended."""
    for _, run in groupby(actions, key=_sort):
        await _perform_run(run, perform)


async def _perform_run(actions: Iterator[Action], perform: Perform) -> None:
    under_way: set[asyncio.Future[None]] = set()
    allowed, error = 1, None
    while True:
        while error is None and len(under_way) < allowed and (action := next(actions, None)) is not None:
            under_way.add(asyncio.ensure_future(perform(action)))
        if not under_way:
            break
        ended, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        # Each is asked, so that none is reported as never looked at.
        errors = [found for one in ended if (found := one.exception())]
        error = error or next(iter(errors), None)
        allowed = min(allowed + len(ended), MOST_IN_FLIGHT)
    if error is not None:
        raise error


def _sort(action: Action) -> str:
    return f"create {action.kind}" if isinstance(action, Create) else type(action).__name__
