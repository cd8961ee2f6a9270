"""Carrying out a plan's actions: in order, but many of one kind at once.

The first of a kind goes alone: if it is rejected (a quota, a bad image name), a thousand others are not tried. Each
success admits one more, so 1, 2, 4 ... up to 32 are in flight. Before each create the caller is asked whether to go on:
the job may have been deleted meanwhile, or other jobs may wait for their turn. What was left out is planned again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby

from paddlejob.plan import Action, Create

MOST_IN_FLIGHT = 32
Perform = Callable[[Action], Awaitable[None]]
Proceed = Callable[[], bool]


async def carry_out(actions: Iterable[Action], perform: Perform, proceed: Proceed = lambda: True) -> bool:
    """Perform all. After an error no further one starts; it is raised when those in flight have ended.

    Returns False if `proceed` ended it early.
    """
    for _, run in groupby(actions, key=_kind):
        if not await _perform_run(run, perform, proceed):
            return False
    return True


async def _perform_run(actions: Iterator[Action], perform: Perform, proceed: Proceed) -> bool:
    in_flight: set[asyncio.Future[None]] = set()
    try:
        return await _perform_concurrently(actions, perform, proceed, in_flight)
    finally:
        # Only a cancelled turn leaves any in flight; they must not outlive it.
        for one in in_flight:
            one.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)


async def _perform_concurrently(
    actions: Iterator[Action], perform: Perform, proceed: Proceed, in_flight: set[asyncio.Future[None]]
) -> bool:
    allowed, error, proceeds = 1, None, True
    while True:
        while error is None and proceeds and len(in_flight) < allowed and (action := next(actions, None)) is not None:
            proceeds = not isinstance(action, Create) or proceed()
            if proceeds:
                in_flight.add(asyncio.ensure_future(perform(action)))
        if not in_flight:
            break
        ended, _ = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
        in_flight -= ended
        # asyncio complains about an exception that was never retrieved, so retrieve each.
        errors = [found for one in ended if (found := one.exception())]
        error = error or next(iter(errors), None)
        allowed = min(allowed + len(ended), MOST_IN_FLIGHT)
    if error is not None:
        raise error
    return proceeds


def _kind(action: Action) -> str:
    return f"create {action.kind}" if isinstance(action, Create) else type(action).__name__
