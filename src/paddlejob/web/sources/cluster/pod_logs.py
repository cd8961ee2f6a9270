"""The logs of pods, for a page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from itertools import groupby
from typing import Any

from paddlejob import contract
from paddlejob.client.targets import pod_log
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.logs import follow_logs, has_started, pods_of, select_pods
from paddlejob.client.targets.target import LogChoice
from paddlejob.kube.client import Client
from paddlejob.objects.resources import PADDLEJOBS, attempt_of
from paddlejob.web.logs.lines import LogQuery, LogRef, Match, Matches, Piece, decode
from paddlejob.web.logs.search import MOST_MATCHES, Searched, compile_query, search

FIRST_LINES = 1500
"""Of each replica, when a page opens a log."""
QUEUE_LINES = 5000
PAUSE = 0.3
SEARCH_LIMIT = 64 << 20
"""Bytes of one pod that a search reads; a kubelet keeps 10 MiB of a container unless it is configured otherwise."""
PREFIX = re.compile(rb"\[((?:ps|worker|heter)-[0-9]+)\] ")
Object = dict[str, Any]


class PodLogs:
    def __init__(self, target: ClusterTarget) -> None:
        self._target = target

    async def references(self, client: Client, namespace: str, name: str) -> list[LogRef]:
        pods = await self._started(client, namespace, name)
        return sorted((LogRef(attempt_of(pod), replica_of(pod)) for pod in pods), key=lambda ref: ref.attempt)

    async def follow(self, client: Client, namespace: str, name: str, query: LogQuery) -> AsyncIterator[list[Piece]]:
        choice = LogChoice(query.role, query.index, query.attempt, follow=True, tail=FIRST_LINES)
        lines = follow_logs(client, namespace, name, choice, self._target.flags(namespace))
        async with aclosing(in_batches(lines)) as batches:
            async for batch in batches:
                yield pieces_of(batch, query.replica)

    async def search(self, client: Client, namespace: str, name: str, query: LogQuery, pattern: str) -> Matches:
        """One pod after the other, so that only the log of one is in memory."""
        found: list[Match] = []
        complete, searched = True, 0
        compile_query(pattern)
        for pod in await self._chosen(client, namespace, name, query):
            content, whole = await _content(client, pod)
            matches = await asyncio.to_thread(search, [Searched(replica_of(pod), attempt_of(pod), [content])], pattern)
            found += matches.found
            searched += matches.searched
            complete = complete and whole and matches.complete
            if len(found) > MOST_MATCHES:
                return Matches(found[:MOST_MATCHES], complete=False, searched=searched)
        return Matches(found, complete, searched)

    async def download(self, client: Client, namespace: str, name: str, query: LogQuery) -> AsyncIterator[bytes]:
        pods = await self._chosen(client, namespace, name, query)
        for pod in pods:
            if len(pods) > 1:
                yield f"==> {replica_of(pod)} <==\n".encode()
            async for line in pod_log.read(client, pod, LogChoice()):
                yield line + b"\n"

    async def _chosen(self, client: Client, namespace: str, name: str, query: LogQuery) -> list[Object]:
        pods = await self._started(client, namespace, name)
        return select_pods(pods, LogChoice(query.role, query.index, query.attempt))

    async def _started(self, client: Client, namespace: str, name: str) -> list[Object]:
        job = await client.get(PADDLEJOBS, name, namespace)
        return [pod for pod in await pods_of(client, job) if has_started(pod, LogChoice())]


async def _content(client: Client, pod: Object) -> tuple[bytes, bool]:
    """The log of a pod, and whether that is all of it."""
    lines, size = [], 0
    async with aclosing(pod_log.read(client, pod, LogChoice())) as found:  # type: ignore[type-var]
        async for line in found:
            lines.append(line)
            size += len(line)
            if size > SEARCH_LIMIT:
                return b"\n".join(lines), False
    return b"\n".join(lines), True


def replica_of(pod: Object) -> str:
    labels = pod["metadata"].get("labels") or {}
    return f"{labels.get(contract.LABEL_ROLE)}-{labels.get(contract.LABEL_INDEX)}"


def pieces_of(batch: list[bytes], replica: str) -> list[Piece]:
    """Lines of several replicas carry a prefix; those of one replica that follow each other become one piece."""
    named = []
    for line in batch:
        found = None if replica else PREFIX.match(line)
        named.append(
            (found[1].decode() if found else replica or "worker-0", decode(line[found.end() :] if found else line))
        )
    return [Piece(name, [text for _, text in lines]) for name, lines in groupby(named, key=lambda one: one[0])]


async def in_batches(lines: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes], None]:
    """What has arrived since the last batch; an iterator that is ahead waits."""
    queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUE_LINES)

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
            await asyncio.sleep(PAUSE)
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
