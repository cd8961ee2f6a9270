"""The logs of one attempt of a job on a cluster: the lines of worker 0, and when any other worker last printed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paddlejob.api.types import PaddleJob, Role
from paddlejob.engine.log_follower import LogFollower
from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.operator.pod_log import NewLines, new_lines
from paddlejob.plan import Pod, PodPhase
from paddlejob.progress import Parser

SPACING = 0.0525
"""Seconds between two requests: at most 20 in a second."""


@dataclass
class Source:
    """Where logs come from: a client, a limit on requests that all jobs share, and a clock for silence."""

    client: Client
    monotonic: Callable[[], float]
    _next: float = 0.0

    async def wait_for_turn(self) -> None:
        now = self.monotonic()
        turn = max(now, self._next)
        self._next = turn + SPACING
        if turn > now:
            await asyncio.sleep(turn - now)


class JobLog:
    def __init__(self, job: PaddleJob, source: Source) -> None:
        progress = job.status.progress
        self.uid = job.metadata.uid
        self.follower = LogFollower(
            job.status.attempt, Parser(job.spec.progress), progress.highestStep if progress else None
        )
        self._source = source
        self._began: float | None = None
        self._newest: dict[int, str] = {}
        """By worker: the timestamp of its newest line that was read."""
        self._looked: dict[int, float] = {}
        """By worker: when it was last read."""
        self._first = 0
        """The worker with rank 0, whose lines are read anyway."""
        self._speaker = 0
        """The worker that was last found to print; it is asked first."""

    async def read(self, pod: Pod, namespace: str, container: str, most: int) -> None:
        """Take the new lines of the worker with rank 0. Raises KubeError."""
        self._first = pod.index
        moment = self._source.monotonic()
        found = await self._ask(pod, namespace, container, most)
        now = self._source.client.server_time()
        self.follower.feed((min(at, now), text) for at, text in found.lines)
        self._hear(pod.index, found, moment)

    async def listen(
        self, workers: Mapping[int, Pod] | None, namespace: str, container: str, limit: float, moment: float
    ) -> None:
        """Find out whether all workers were silent for `limit` seconds until `moment`, after which worker 0 was read.

        `workers` is None if not all pods run. They are asked one after the other, until one is found that is not
        silent. Raises KubeError.
        """
        if workers is None:
            self.follower.begin_anew()
            return
        if self.follower.silent_since is None:
            self._began = moment
            self.follower.hear(moment)
        for index in sorted(workers, key=lambda index: (index != self._speaker, index)):
            if moment - (self.follower.silent_since or moment) < limit:
                return
            if index == self._first and index in self._looked:
                continue
            asked = self._source.monotonic()
            self._hear(index, await self._ask(workers[index], namespace, container, 1), asked)
        if moment - (self.follower.silent_since or moment) >= limit:
            self.follower.hear_nothing(moment)

    async def _ask(self, pod: Pod, namespace: str, container: str, most: int) -> NewLines:
        await self._source.wait_for_turn()
        before = self._newest.get(pod.index, "")
        try:
            return await new_lines(self._source.client, namespace, pod.name, container, most=most, after=before)
        except NotFound:
            return NewLines((), before)

    def _hear(self, index: int, found: NewLines, moment: float) -> None:
        """A new line was printed since the last look. The clock of its node may be wrong by more than that."""
        if found.lines:
            at = found.lines[-1][0]
            now = self._source.client.server_time()
            age = max(0.0, now - at)
            earliest = self._looked.get(index, self._began)
            if earliest is not None:
                self.follower.hear(max(earliest, moment - age))
            self.follower.printed(min(at, now))
            self._speaker = index
        self._newest[index] = found.last
        self._looked[index] = moment

    def due(self, limit: float | None) -> float | None:
        """In how many seconds all workers may have been silent for that long."""
        since = self.follower.silent_since
        return None if limit is None or since is None else since + limit - self._source.monotonic()


def running_workers(pods: list[Pod], attempt: int) -> dict[int, Pod] | None:
    """Workers that have not ended; None unless every pod that has not ended runs."""
    unfinished = [pod for pod in pods if pod.attempt == attempt and not pod.ended]
    if not all(pod.phase is PodPhase.RUNNING and not pod.deleting for pod in unfinished):
        return None
    return {pod.index: pod for pod in unfinished if pod.role is Role.WORKER} or None
