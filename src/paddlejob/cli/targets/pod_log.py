"""The log of one pod on a cluster: what is there, or as it grows, over connections that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from paddlejob.cli.targets.target import LogChoice
from paddlejob.cli.targets.view import training_container, training_state
from paddlejob.errors import ApiError, BadInput, NotFound, Overloaded, Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS

Object = dict[str, Any]
PAUSE = 1.0
AWAY = (Unreachable, Overloaded)
"""The cluster does not answer, or the way to it broke: worth another try."""


async def read(client: Client, pod: Object, choice: LogChoice) -> AsyncIterator[bytes]:
    """Lines that have been written so far."""
    async for line in _request(client, pod, _params(pod, choice)):
        yield line


async def follow(client: Client, pod: Object, choice: LogChoice) -> AsyncIterator[bytes]:
    """Every line once, until the container has ended. Time stamps tell where a new connection goes on."""
    params = _params(pod, choice) | {"follow": "true", "timestamps": "true"}
    last = b""
    while True:
        try:
            over = await _has_ended(client, pod, choice.container)
            known = last
            async for line in _request(client, pod, params):
                stamp, _, words = line.partition(b" ")
                if known and stamp <= known:
                    continue
                known, last = b"", stamp
                yield words
            if over:
                return
        except AWAY:
            pass
        if last:
            params = {key: value for key, value in params.items() if key != "tailLines"} | {"sinceTime": last.decode()}
        await asyncio.sleep(PAUSE)


def _params(pod: Object, choice: LogChoice) -> dict[str, str]:
    tail = {"tailLines": str(choice.tail)} if choice.tail >= 0 else {}
    return {"container": choice.container or training_container(pod), **tail}


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
        raise BadInput(f"the log of {metadata['name']} cannot be read: {error.message}") from error


async def _has_ended(client: Client, pod: Object, container: str) -> bool:
    metadata = pod["metadata"]
    try:
        now = await client.get(PODS, metadata["name"], metadata["namespace"])
    except NotFound:
        return True
    return now["metadata"]["uid"] != metadata["uid"] or "terminated" in training_state(now, container)
