"""Lines of a blocking iterator for a coroutine that may stop waiting for them at any time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress

AHEAD = 1000
"""Lines that are read before the coroutine takes them."""


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


async def async_lines(lines: Iterator[str]) -> AsyncGenerator[str, None]:
    """A daemon thread reads: one of the loop's own would keep asyncio.run from ending until the next line comes."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | _End]()
    free, stopped = threading.Semaphore(AHEAD), threading.Event()

    def send(item: str | _End) -> None:
        with suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def read() -> None:
        end = _End(None)
        try:
            for line in lines:
                free.acquire()
                if stopped.is_set():
                    return
                send(line)
        except BaseException as error:
            end = _End(error)
        send(end)

    threading.Thread(target=read, daemon=True, name="logs").start()
    try:
        while not isinstance(item := await queue.get(), _End):
            free.release()
            yield item
        if item.error:
            raise item.error
    finally:
        stopped.set()
        free.release()
