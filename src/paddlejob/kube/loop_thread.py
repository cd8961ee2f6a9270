"""An event loop in a thread of its own, for what must go on while the main loop is busy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Self, TypeVar

T = TypeVar("T")


class LoopThread:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        await self._stop.wait()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it in the thread; cancelling the caller cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def enter(self, stack: AsyncExitStack, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter in the thread, and leave there when the stack is left."""

        async def enter() -> T:
            return await manager.__aenter__()

        async def leave() -> None:
            await manager.__aexit__(None, None, None)

        entered = await self.call(enter())
        stack.push_async_callback(lambda: self.call(leave()))
        return entered
