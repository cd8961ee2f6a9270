"""The logs of one attempt of a job on a cluster: the lines of worker 0, and whether any other worker prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.engine.log_follower import Line, LogFollower
from paddlejob.errors import NotFound, Unreachable
from paddlejob.kube.client import Client
from paddlejob.logs.line import LogLine
from paddlejob.logs.pods import PodLog, PodReader
from paddlejob.operator.pattern_budget import BudgetedParser, PatternBudget
from paddlejob.plan import Pod, PodPhase
from paddlejob.plan.world import LogReading

SPACING = 0.0525
"""Seconds between two requests: at most 20 in a second."""
READ_SECONDS = 5.0
"""A node that does not answer must not hold up the logs of other jobs."""
MOST_BYTES = 128 * 1024


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
    def __init__(self, job: PaddleJob, source: Source, budget: PatternBudget | None = None) -> None:
        progress = job.status.progress
        self.uid = job.metadata.uid
        self.spec = job.spec.progress
        self._parser = BudgetedParser(job.spec.progress, budget or PatternBudget(source.monotonic))
        self.follower = LogFollower(job.status.attempt, self._parser, progress.highestStep if progress else None)
        built, attempt = job.status.builtAttempt, job.status.attempt
        self._begins_with = contract.ATTEMPT_MARKER.format(attempt) if built else ""
        """The line after which the output of the attempt follows; empty once it was read, or if there is none."""
        self._source = source
        self._readers: dict[int, PodReader] = {}
        """By worker."""
        self._looked: dict[int, float] = {}
        """By worker: when it was last read."""
        self._first = 0
        """The worker with rank 0, whose lines are read anyway."""
        self._speaker = 0
        """The worker that was last found to print; it is asked first."""

    @property
    def was_read(self) -> bool:
        return self._first in self._looked

    @property
    def reading(self) -> LogReading:
        return replace(self.follower.reading, pattern_too_slow=self._parser.is_off)

    async def read(self, pod: Pod, namespace: str, container: str, most: int) -> None:
        """Take the new lines of the worker with rank 0. Raises KubeError."""
        self._first = pod.index
        lines = await self._ask(pod, namespace, container, most)
        while self._readers[pod.index].cut:
            lines += await self._ask(pod, namespace, container, most)
        lines = self._of_attempt(lines, most)
        if self._parser.pattern is None:
            self.follower.feed(lines)
        else:
            await asyncio.to_thread(self.follower.feed, lines)

    def _of_attempt(self, found: list[Line], most: int) -> list[Line]:
        """Without the lines of earlier attempts, whose programs ran in the same pod.

        If there were more lines than were asked for, the one with which the attempt begins may be among the others.
        """
        if not self._begins_with or not found:
            return found
        began = [number for number, (_, text) in enumerate(found) if text.rstrip() == self._begins_with]
        if began or len(found) >= most:
            self._begins_with = ""
            return found[began[-1] + 1 :] if began else found
        return []

    async def listen(
        self, workers: Mapping[int, Pod] | None, namespace: str, container: str, limit: float, moment: float
    ) -> None:
        """Find out whether all workers were silent for `limit` seconds until `moment`, after which worker 0 was read.

        `workers` is None if not all pods run. A worker is known to be silent only if two looks find the same last line.
        So all are looked at after half of that time, unless they were since, and again at the end. The one that was
        last found to print comes first, and if it has, the others are left alone. Raises KubeError.
        """
        if workers is None:
            self.follower.begin_anew()
            return
        if self.follower.silent_since is None:
            self.follower.hear(moment)
        speaker = self._speaker
        others = sorted(workers.keys() - {self._first}, key=lambda index: (index != speaker, index))
        for share in (limit / 2, limit):
            since = self.follower.silent_since or moment
            if moment - since < share:
                return
            for index in others:
                if share == limit or self._looked.get(index, since) <= since:
                    await self._ask(workers[index], namespace, container, 1)
                if index == speaker and self.follower.silent_since != since:
                    return
            if self.follower.silent_since != since:
                return
            self.follower.hear_nothing(moment if share == limit else since + share)

    async def _ask(self, pod: Pod, namespace: str, container: str, most: int) -> list[Line]:
        """The newest lines since the last look, at most so many. Raises KubeError.

        Any new line means that the worker printed, however its node dates it. What the first look finds may be old, but
        that cannot be known.
        """
        await self._source.wait_for_turn()
        log = PodLog(namespace, pod.name, container)
        reader = self._readers.setdefault(pod.index, PodReader(self._source.client, log))
        found: list[LogLine] = []
        try:
            with suppress(NotFound):
                async with (
                    asyncio.timeout(READ_SECONDS),
                    aclosing(reader.lines(tail=most, most_bytes=MOST_BYTES)) as lines,
                ):
                    found = [line async for line in lines]
        except TimeoutError as error:
            raise Unreachable(f"the log of {pod.name} was not sent within {READ_SECONDS:.0f} s") from error
        self._looked[pod.index] = self._source.monotonic()
        now = self._source.client.server_time()
        dated = [(min(line.time, now), line.text) for line in found if line.time is not None]
        if found:
            self._speaker = pod.index
            self.follower.hear(self._looked[pod.index])
            latest, before = dated[-1][0] if dated else now, self.follower.reading.last_output
            self.follower.printed(now if before is not None and latest < before else latest)
        return dated

    def due(self, limit: float | None) -> float | None:
        """In how many seconds workers are to be looked at because all may have been silent for too long."""
        since = self.follower.silent_since
        if limit is None or since is None:
            return None
        silent = self._source.monotonic() - since
        return (limit / 2 if silent < limit / 2 else limit) - silent


def running_workers(pods: list[Pod], attempt: int) -> dict[int, Pod] | None:
    """Workers that have not ended; None unless every pod that has not ended runs."""
    unfinished = [pod for pod in pods if pod.attempt == attempt and not pod.ended]
    if not all(pod.phase is PodPhase.RUNNING and not pod.deleting for pod in unfinished):
        return None
    return {pod.index: pod for pod in unfinished if pod.role is Role.WORKER} or None
