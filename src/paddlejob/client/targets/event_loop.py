"""Asynchronous code for callers that are not. A notebook already runs an event loop, so there a thread has its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def run_outside_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine."""
    if not _loop_is_running():
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def iterate(stream: AsyncIterator[T]) -> Iterator[T]:
    """An asynchronous iterator as a synchronous one. It is closed when the caller stops early."""
    with _runner() as run:
        while (piece := run(anext(stream, None))) is not None:
            yield piece


@contextmanager
def _runner() -> Iterator[Any]:
    if not _loop_is_running():
        with asyncio.Runner() as runner:
            yield lambda awaitable: runner.run(_awaited(awaitable))
        return
    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as thread:
        running: Future[None] = thread.submit(_run_forever, loop)
        try:
            yield lambda awaitable: asyncio.run_coroutine_threadsafe(_awaited(awaitable), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            running.result()


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        for task in (pending := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
