"""Targets for callers without an event loop. A notebook already runs one, so there a thread has its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from paddlejob.targets.target import OnRetry, Target, ignore

if TYPE_CHECKING:
    from paddlejob.logs.line import LogLine
    from paddlejob.logs.selection import LogSelection
    from paddlejob.logs.series import LoggedSample, Series
    from paddlejob.targets.log_views import LastOutput
    from paddlejob.targets.views import JobView

T = TypeVar("T")


class SyncTarget:
    """A target for verbs and the Python API: each call waits for its result."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.default_namespace = target.default_namespace
        self.remembered_namespace = target.remembered_namespace
        self.pause = target.pause
        self.flags = target.flags
        self.start_command = target.start_command

    def jobs(self, namespace: str | None) -> list[JobView]:
        return run_outside_loop(self.target.jobs(namespace))

    def job(self, namespace: str, name: str) -> JobView:
        return run_outside_loop(self.target.job(namespace, name))

    def last_output(self, view: JobView) -> LastOutput | None:
        return run_outside_loop(self.target.last_output(view))

    def series(self, namespace: str, name: str) -> Series:
        return run_outside_loop(self.target.series(namespace, name))

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        return run_outside_loop(self.target.delete(namespace, name, wait))

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        run_outside_loop(self.target.change(namespace, name, **fields))

    def logs(
        self, namespace: str, name: str, selection: LogSelection, follow: bool = False, on_retry: OnRetry = ignore
    ) -> tuple[bool, Iterator[list[LogLine]]]:
        """Whether the lines need names, and the lines in batches."""
        stream = run_outside_loop(self.target.logs(namespace, name, selection, follow, on_retry))
        return stream.several, iterate(stream.batches)

    def samples(self, namespace: str, name: str, follow: bool = False) -> Iterator[LoggedSample]:
        return (one for batch in iterate(self.target.samples(namespace, name, follow)) for one in batch)


def run_outside_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine."""
    if not _loop_is_running():
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def iterate(stream: AsyncGenerator[T, None]) -> Iterator[T]:
    """An asynchronous generator as a synchronous one. It is closed when the caller stops early."""
    with _runner() as run:
        try:
            while (piece := run(anext(stream, None))) is not None:
                yield piece
        finally:
            # After an interrupt it may still be running; then it ends with its loop.
            with suppress(RuntimeError):
                run(stream.aclose())


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
        loop.run_until_complete(_cancel_tasks())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _cancel_tasks() -> None:
    """Inside the loop: outside of one, asyncio.gather of nothing fails."""
    pending = asyncio.all_tasks() - {asyncio.current_task()}
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
