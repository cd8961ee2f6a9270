"""The log of one container on a cluster, and the one rule for reading on after a connection broke."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from paddlejob.errors import Overloaded, Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.logs.line import LogLine, begun_attempt
from paddlejob.plan import times

PAUSE = 1.0
RETRYABLE = (Unreachable, Overloaded)
"""The cluster does not answer or the connection broke; another attempt may succeed."""
RESUMED = 100
"""Lines that are asked for to find the last one that was read."""


@dataclass(frozen=True, slots=True)
class PodLog:
    namespace: str
    pod: str
    container: str
    replica: str = ""
    attempt: int = 0


class _Stamped(NamedTuple):
    timestamp: str
    """As its node wrote it; empty for the rest of a line that comes in parts."""
    moment: float | None
    content: bytes


@dataclass
class _Position:
    """The last line that was read, by its timestamp. Timestamps only name lines; they do not order them."""

    timestamp: str = ""
    repeated: int = 0
    """How many lines have had this timestamp."""
    size: int = 0
    """A line that had not ended when it was read is longer later."""
    latest: float = -math.inf
    """The latest time of all lines so far."""

    def advance(self, line: _Stamped) -> None:
        if line.moment is not None:
            self.repeated = self.repeated + 1 if line.timestamp == self.timestamp else 1
            self.timestamp, self.size = line.timestamp, len(line.content)
            self.latest = max(line.moment, self.latest)


class _Answer:
    """Tells which lines of an answer are new: those after the position, or all if that is not part of it."""

    def __init__(self, position: _Position, most: int) -> None:
        self._position = position
        self._most = most
        self._left = position.repeated
        self._resuming = bool(position.timestamp)
        self._held: list[_Stamped] = []
        self._at_position = False
        self.first_is_new = False

    def take(self, line: _Stamped) -> list[_Stamped]:
        """The lines that are known to be new by now. Others are held back as long as the position may follow."""
        self._at_position = self._at_position and not line.timestamp
        if not self._resuming:
            return [] if self._at_position else [line]
        if line.timestamp == self._position.timestamp:
            self._held, self._left = [], self._left - 1
            self._resuming, self._at_position = self._left > 0, True
            grown = not self._resuming and len(line.content) > self._position.size
            self._position.repeated -= grown  # it is counted once more
            return [line] if grown else []
        if self._left < self._position.repeated:
            self._resuming = False
            return [line]
        later = line.moment is not None and line.moment > self._position.latest
        self.first_is_new = self.first_is_new or (later and not self._held)
        self._held.append(line)
        return self.rest() if later or len(self._held) >= self._most else []

    def rest(self) -> list[_Stamped]:
        """At the end of the answer, or once the position cannot follow any more."""
        self._resuming, held, self._held = False, self._held, []
        return held


class PodReader:
    """Every line once: each request continues after the last line that the one before has read.

    A server that is asked for the lines since a time leaves out new ones once the clock of its node was set back. So
    the newest lines are asked for, whatever their times; a time only where they do not reach back to the last one.
    """

    def __init__(self, client: Client, log: PodLog) -> None:
        self.log = log
        self.client = client
        self.cut = False
        """Whether the last answer reached its limit of bytes, so that the newest lines were not part of it.

        The next one begins later.
        """
        self._most = sys.maxsize
        """Lines to ask for at once, so that an answer stays below its limit."""
        self._position = _Position()
        self._attempt = log.attempt
        """Of the last line: a program that was started in place writes to the same log, after a line that says so."""

    async def lines(
        self, *, tail: int = -1, since: float | None = None, most_bytes: int = 0, follow: bool = False
    ) -> AsyncGenerator[LogLine, None]:
        """What is new, with the times of its node; at most the last lines of it. Raises KubeError."""
        self.cut = False
        params = {"container": self.log.container, "timestamps": "true"}
        params |= {"limitBytes": str(most_bytes)} if most_bytes else {}
        last = self._position.timestamp
        resumed = bool(last) and tail < 0
        tail = min(RESUMED if resumed else tail, self._most)
        newest = params | ({"tailLines": str(tail)} if tail >= 0 else {}) | ({"follow": "true"} if follow else {})
        newest |= {"sinceTime": times.format(since)} if since is not None and not last else {}
        answer = _Answer(self._position, tail if tail >= 0 else sys.maxsize)
        async with aclosing(self._read(newest, answer, until_gap=resumed)) as lines:
            async for line in lines:
                yield line
        if resumed and answer.first_is_new:
            answer = _Answer(self._position, sys.maxsize)
            async with aclosing(self._read(params | {"sinceTime": last}, answer)) as lines:
                async for line in lines:
                    yield line
        self.cut = self.cut and tail > 1
        if self.cut:
            self._most = tail // 2

    async def _read(
        self, params: dict[str, str], answer: _Answer, until_gap: bool = False
    ) -> AsyncGenerator[LogLine, None]:
        """With `until_gap` it ends if the answer does not reach back to the last line that was read."""
        log, size = self.log, 0
        async with aclosing(self.client.lines(PODS, log.pod, log.namespace, "log", params)) as lines:
            async for raw in lines:
                size += len(raw) + 1
                new = answer.take(_parse(raw))
                if until_gap and answer.first_is_new:
                    return
                for line in new:
                    yield self._advance(line)
        self.cut = size >= int(params.get("limitBytes", sys.maxsize))
        for line in answer.rest():
            yield self._advance(line)

    def _advance(self, line: _Stamped) -> LogLine:
        self._position.advance(line)
        self._attempt = begun_attempt(line.content) or self._attempt
        return LogLine(self.log.replica, self._attempt, line.moment, line.content)

    async def follow(
        self, ended: Callable[[], Awaitable[bool]], tail: int = -1, since: float | None = None
    ) -> AsyncGenerator[LogLine, None]:
        """Until the container has ended. Raises KubeError, except where another connection may help."""
        while True:
            try:
                over = await ended()
                new = self.lines(tail=-1 if self._position.timestamp else tail, since=since, follow=True)
                async with aclosing(new) as lines:
                    async for line in lines:
                        yield line
                if over:
                    return
            except RETRYABLE:
                pass
            await asyncio.sleep(PAUSE)


def _parse(raw: bytes) -> _Stamped:
    timestamp, _, text = raw.partition(b" ")
    try:
        return _Stamped(timestamp.decode(), times.parse(timestamp.decode()), text)
    except ValueError:
        return _Stamped("", None, raw)
