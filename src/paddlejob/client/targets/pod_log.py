"""The log of one pod on a cluster: what it holds now, or followed across broken connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from paddlejob.client.targets.target import LogChoice
from paddlejob.client.targets.view import container_name, training_state
from paddlejob.errors import ApiError, BadInput, KubeError, NotFound, Overloaded, Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.plan import times

Object = dict[str, Any]
PAUSE = 1.0
RETRYABLE = (Unreachable, Overloaded)
"""The cluster does not answer or the connection broke; another attempt may succeed."""


async def read(client: Client, pod: Object, choice: LogChoice) -> AsyncIterator[bytes]:
    """The lines written so far."""
    if choice.pattern and choice.tail >= 0:
        for _, line in (await _last_matches(client, pod, choice))[0]:
            yield line
        return
    async for line in _request(client, pod, _params(pod, choice)):
        if choice.shows(line):
            yield line


async def follow(client: Client, pod: Object, choice: LogChoice) -> AsyncIterator[bytes]:
    """Every line once, until the container has ended."""
    last = b""
    if choice.pattern and choice.tail >= 0:
        kept, last = await _last_matches(client, pod, choice)
        for _, text in kept:
            yield text
        choice = replace(choice, tail=-1)
    async for _, text in follow_timed(client, pod, choice, last):
        if choice.shows(text):
            yield text


async def _last_matches(client: Client, pod: Object, choice: LogChoice) -> tuple[Sequence[tuple[bytes, bytes]], bytes]:
    """The last lines that match, and the time of the last line of all. The server cannot search, so all are read."""
    kept: deque[tuple[bytes, bytes]] = deque(maxlen=choice.tail)
    last = b""
    async for last, text in read_timed(client, pod, replace(choice, tail=-1)):
        if choice.shows(text):
            kept.append((last, text))
    return kept, last


async def read_timed(client: Client, pod: Object, choice: LogChoice) -> AsyncIterator[tuple[bytes, bytes]]:
    """The lines written so far, each with the time at which its node received it."""
    async for line in _request(client, pod, _params(pod, choice) | {"timestamps": "true"}):
        timestamp, _, text = line.partition(b" ")
        yield timestamp, text


async def follow_timed(
    client: Client, pod: Object, choice: LogChoice, last: bytes = b""
) -> AsyncIterator[tuple[bytes, bytes]]:
    """Every line after the time `last`, until the container has ended; a new connection continues by timestamps."""
    params = _params(pod, choice) | {"follow": "true", "timestamps": "true"}
    params |= {"sinceTime": last.decode()} if last else {}
    while True:
        try:
            ended = await _has_ended(client, pod, choice.container)
            resume_after = last
            async for line in _request(client, pod, params):
                timestamp, _, text = line.partition(b" ")
                if resume_after and timestamp <= resume_after:
                    continue
                resume_after, last = b"", timestamp
                yield timestamp, text
            if ended:
                return
        except RETRYABLE:
            pass
        if last:
            params = {key: value for key, value in params.items() if key != "tailLines"} | {"sinceTime": last.decode()}
        await asyncio.sleep(PAUSE)


async def last_time(client: Client, pod: Object) -> float | None:
    """When the training container wrote its last line; None if it wrote none or its node does not answer."""
    params = _params(pod, LogChoice(tail=1)) | {"timestamps": "true"}
    last = None
    with suppress(KubeError, BadInput, ValueError):
        async for line in _request(client, pod, params):
            last = moment(line.partition(b" ")[0])
    return last


def moment(timestamp: bytes) -> float:
    """The time of a line, in seconds since the epoch; raises ValueError."""
    return times.parse(timestamp.decode()[:19] + "Z")


def _params(pod: Object, choice: LogChoice) -> dict[str, str]:
    tail = {"tailLines": str(choice.tail)} if choice.tail >= 0 else {}
    since = {} if choice.since is None else {"sinceTime": times.format(choice.since)}
    return {"container": container_name(pod, choice.container), **tail, **since}


async def _request(client: Client, pod: Object, params: dict[str, str]) -> AsyncIterator[bytes]:
    metadata = pod["metadata"]
    try:
        async with aclosing(client.lines(PODS, metadata["name"], metadata["namespace"], "log", params)) as lines:
            async for line in lines:
                yield line
    except NotFound:
        return
    except Overloaded:
        raise
    except ApiError as error:
        raise BadInput(f"cannot read the log of {metadata['name']}: {error.message}") from error


async def _has_ended(client: Client, pod: Object, container: str) -> bool:
    metadata = pod["metadata"]
    try:
        current = await client.get(PODS, metadata["name"], metadata["namespace"])
    except NotFound:
        return True
    return current["metadata"]["uid"] != metadata["uid"] or "terminated" in training_state(current, container)
