"""The newest lines of one container, with the times at which its node wrote them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from paddlejob.engine.log_follower import Line
from paddlejob.errors import Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.plan import times

SECONDS = 5.0
"""A node that does not answer must not hold up the logs of other jobs."""
MOST_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class NewLines:
    lines: tuple[Line, ...]
    last: str
    """The timestamp of the newest line, as the node wrote it; also if it is not new."""


async def new_lines(client: Client, namespace: str, pod: str, container: str, *, most: int, after: str) -> NewLines:
    """At most `most` lines newer than the timestamp `after`. Raises KubeError."""
    params = {
        "container": container,
        "timestamps": "true",
        "tailLines": str(most),
        "limitBytes": str(MOST_BYTES),
    }
    if after:
        params["sinceTime"] = after
    lines: list[Line] = []
    last = after
    try:
        async with (
            asyncio.timeout(SECONDS),
            aclosing(client.lines(PODS, pod, namespace, "log", params)) as found,
        ):
            async for line in found:
                timestamp, _, text = line.decode(errors="replace").partition(" ")
                at = _moment(timestamp)
                # A line without a timestamp is the rest of one that contains carriage returns.
                if at is not None and timestamp > last:
                    last = timestamp
                    lines.append((at, text))
    except TimeoutError as error:
        raise Unreachable(f"the log of {pod} was not sent within {SECONDS:.0f} s") from error
    return NewLines(tuple(lines), last)


def _moment(timestamp: str) -> float | None:
    try:
        return times.parse(timestamp)
    except ValueError:
        return None
