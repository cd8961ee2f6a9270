"""The logs and metrics of a job on a cluster."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from itertools import groupby
from typing import Any

from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.logs.follow import LogPiece
from paddlejob.logs.job_pods import (
    JobPods,
    attempts_of,
    first_workers,
    has_started,
    pod_reader,
    read_pod,
    replica_of,
    select_pods,
)
from paddlejob.logs.line import LogLine, on_screen, shown
from paddlejob.logs.pod_follower import PodFollower
from paddlejob.logs.pods import PodReader
from paddlejob.logs.search import MOST_MATCHES, Match, Matches, Searched, compile_query, search
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.series import Collector, LineParser, Series
from paddlejob.objects.resources import PADDLEJOBS, attempt_of
from paddlejob.targets.cluster.parsing import job_view, pods_of
from paddlejob.targets.log_views import LastLines, LogRef
from paddlejob.targets.views import JobView

Object = dict[str, Any]
BATCH = 1000
PAGE_LINES = 1500
"""Of each replica, when a page opens a log."""
PAGE_QUEUE = 5000
PAGE_PAUSE = 0.3
SEARCH_LIMIT = 64 << 20
"""Bytes of one pod that a search reads; a kubelet keeps 10 MiB of a container unless it is configured otherwise."""
MOST_LAST_LINES = 200
KEPT_SERIES = 20
"""Jobs whose points stay in memory."""


class JobLogs:
    """Those of one job, over a connection. The flags select it in commands."""

    def __init__(self, client: Client, key: Key, flags: str) -> None:
        self._client = client
        self._key = key
        self._flags = flags

    async def look(self) -> JobPods | None:
        """None if the job was deleted."""
        try:
            job = await self._client.get(PADDLEJOBS, self._key[1], self._key[0])
        except NotFound:
            return None
        return JobPods(job_view(job).job, await pods_of(self._client, job))

    async def read(self, selection: LogSelection) -> AsyncGenerator[list[LogLine], None]:
        """The lines written so far, one pod after another."""
        for pod in await self._selected(selection):
            batch = []
            async for line in read_pod(self._client, pod, selection):
                batch.append(line)
                if len(batch) == BATCH:
                    yield batch
                    batch = []
            yield batch

    def follow(self, selection: LogSelection, on_retry: Callable[[str], None]) -> AsyncGenerator[LogLine, None]:
        return PodFollower(self._client, self.look, selection, on_retry).lines(self._flags)

    async def _selected(self, selection: LogSelection) -> list[Object]:
        """Raises BadInput if there is no such log."""
        seen = await self.look()
        pods = select_pods(seen.pods, selection, seen.job.status) if seen else []
        if seen and not pods:
            raise seen.no_log(self._flags)
        return pods

    async def refs(self) -> list[LogRef]:
        """Oldest attempt first."""
        seen = await self.look()
        pods = [(pod, attempts_of(pod, seen.job.status)) for pod in seen.pods if has_started(pod)] if seen else []
        refs = [LogRef(attempt, replica_of(pod)) for pod, attempts in pods for attempt in attempts]
        return sorted(refs, key=lambda ref: ref.attempt)

    async def pieces(self, selection: LogSelection) -> AsyncGenerator[list[LogPiece], None]:
        lines = self.follow(selection, lambda reason: None)
        async with aclosing(in_batches(lines)) as batches:
            async for batch in batches:
                named = groupby(batch, key=lambda line: line.replica)
                yield [LogPiece(replica, [shown(line.content) for line in group]) for replica, group in named]

    async def search(self, selection: LogSelection, pattern: str) -> Matches:
        """One pod after the other, so that only the log of one is in memory."""
        found: list[Match] = []
        complete, searched = True, 0
        compile_query(pattern)
        for pod in await self._selected(selection):
            content, whole = await self._content(pod, selection.attempt)
            attempt = selection.attempt or attempt_of(pod)
            matches = await asyncio.to_thread(search, [Searched(replica_of(pod), attempt, [content])], pattern)
            found += matches.found
            searched += matches.searched
            complete = complete and whole and matches.complete
            if len(found) > MOST_MATCHES:
                return Matches(found[:MOST_MATCHES], complete=False, searched=searched)
        return Matches(found, complete, searched)

    async def _content(self, pod: Object, attempt: int) -> tuple[bytes, bool]:
        """The log of a pod, and whether that is all of it."""
        lines, size = [], 0
        async with aclosing(read_pod(self._client, pod, LogSelection(attempt=attempt))) as found:
            async for line in found:
                lines.append(line.content)
                size += len(line.content)
                if size > SEARCH_LIMIT:
                    return b"\n".join(lines), False
        return b"\n".join(lines), True

    async def download(self, selection: LogSelection) -> AsyncGenerator[bytes, None]:
        pods = await self._selected(selection)
        for pod in pods:
            if len(pods) > 1:
                yield f"==> {replica_of(pod)} <==\n".encode()
            async for line in read_pod(self._client, pod, selection):
                yield line.content + b"\n"

    async def last_lines(self, view: JobView, count: int) -> LastLines:
        """Empty if the log cannot be read now: who watches goes on without it."""
        quoted = next((pod for pod in view.quoted if pod.state not in ("Pending", "Waiting")), None)
        if not quoted or not count:
            return LastLines()
        lines: list[bytes] = []
        with suppress(KubeError, BadInput):
            pod = await self._client.get(PODS, quoted.name, self._key[0])
            if has_started(pod):
                selection = LogSelection(tail=min(MOST_LAST_LINES, 3 * count))
                lines = [line.content async for line in read_pod(self._client, pod, selection)]
        return LastLines(quoted.replica, tuple(on_screen(lines, count, view.hides_framework(quoted))))


class SeriesCache:
    """The curves of the jobs that were looked at last; each look reads what their logs have added."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, tuple[str, _JobSeries]] = OrderedDict()

    async def read(self, logs: JobLogs, client: Client, key: Key, first: int) -> Series:
        """Of a log that is read for the first time, the last `first` lines; all, if that is negative."""
        seen = await logs.look()
        if seen is None:
            return Series({})
        uid, series = self._known.get(key) or ("", None)
        if series is None or uid != seen.job.metadata.uid:
            series = _JobSeries(seen)
        self._known[key] = (seen.job.metadata.uid, series)
        self._known.move_to_end(key)
        while len(self._known) > KEPT_SERIES:
            self._known.popitem(last=False)
        return await series.read(client, seen, first)


class _JobSeries:
    def __init__(self, seen: JobPods) -> None:
        self._parser = LineParser(seen.job.spec.progress)
        self._collector = Collector()
        self._readers: dict[str, PodReader] = {}
        self._lock = asyncio.Lock()

    async def read(self, client: Client, seen: JobPods, first: int) -> Series:
        async with self._lock:
            for pod in first_workers(seen.pods):
                uid, tail = pod["metadata"]["uid"], -1
                if uid not in self._readers:
                    self._readers[uid], tail = pod_reader(client, pod), first
                reader = self._readers[uid]
                reader.client = client
                # A page shows what there is, and why the job does not run.
                with suppress(KubeError):
                    async for line in reader.lines(tail=tail):
                        self._collector.add(self._parser.samples([line]))
            return self._collector.series()


async def in_batches(lines: AsyncIterator[LogLine]) -> AsyncGenerator[list[LogLine], None]:
    """What has arrived since the last batch; an iterator that is ahead waits."""
    queue: asyncio.Queue[LogLine] = asyncio.Queue(PAGE_QUEUE)

    async def pump() -> None:
        async for line in lines:
            await queue.put(line)

    task = asyncio.create_task(pump())
    try:
        while not (task.done() and queue.empty()):
            batch = []
            with suppress(asyncio.QueueEmpty):
                while True:
                    batch.append(queue.get_nowait())
            yield batch
            await asyncio.sleep(PAGE_PAUSE)
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
