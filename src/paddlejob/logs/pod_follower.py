"""Follows the logs of a job on a cluster, across restarts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

from paddlejob.kube.client import Client
from paddlejob.logs.job_pods import PAUSE, JobPods, Look, follow_pod, select_pods
from paddlejob.logs.line import LogLine
from paddlejob.logs.pods import RETRYABLE
from paddlejob.logs.selection import LogSelection

QUEUE_SIZE = 1000
QUIET_SECONDS = 5.0
"""An inactive job that prints nothing for this long is done, although its parameter servers may still run."""


class PodFollower:
    """One reader task per pod; all of them write to one queue. Pods that start later are read from their beginning.

    An unreachable cluster is retried, because training continues without it; `on_retry` gets the reason, once.
    """

    def __init__(self, client: Client, look: Look, selection: LogSelection, on_retry: Callable[[str], None]) -> None:
        self._client = client
        self._look = look
        self._selection = selection
        self._on_retry = on_retry
        self._seen: JobPods | None = None
        self._over = False
        self._lines: asyncio.Queue[LogLine] = asyncio.Queue(QUEUE_SIZE)
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._unreachable = False

    async def lines(self, flags: str = "") -> AsyncGenerator[LogLine, None]:
        """Until the job is inactive; raises BadInput if it has no such log."""
        checked, quiet = 0.0, 0.0
        try:
            while not self._finished(quiet):
                if not self._over and time.monotonic() - checked >= PAUSE:
                    await self._check()
                    checked = time.monotonic()
                line = await self._next()
                if line:
                    yield line
                quiet = 0.0 if line else quiet + PAUSE
                self._raise_errors()
        finally:
            for reader in self._readers.values():
                reader.cancel()
        if self._seen and not self._readers:
            raise self._seen.no_log(flags)

    def _finished(self, quiet: float) -> bool:
        done = quiet >= QUIET_SECONDS or all(reader.done() for reader in self._readers.values())
        return self._over and self._lines.empty() and done

    async def _check(self) -> None:
        """Read the pods that have started since the last check."""
        try:
            self._seen = await self._look()
            self._unreachable = False
        except RETRYABLE as error:
            if not self._unreachable:
                self._on_retry(str(error))
            self._unreachable = True
            return
        for pod in select_pods(self._seen.pods, self._selection, self._seen.job.status) if self._seen else ():
            if pod["metadata"]["uid"] not in self._readers:
                self._readers[pod["metadata"]["uid"]] = asyncio.create_task(self._read(pod))
        self._over = self._seen is None or self._seen.inactive

    async def _read(self, pod: dict[str, Any]) -> None:
        async with aclosing(follow_pod(self._client, pod, self._selection)) as lines:
            async for line in lines:
                await self._lines.put(line)

    async def _next(self) -> LogLine | None:
        """None if no line arrives in time."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._lines.get(), PAUSE)
        return None

    def _raise_errors(self) -> None:
        for reader in self._readers.values():
            if reader.done():
                reader.result()
