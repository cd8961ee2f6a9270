"""The log of a job's first worker on a cluster, over the attempts whose pods are kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from paddlejob import contract
from paddlejob.api.types import Role
from paddlejob.client.targets import pod_log
from paddlejob.client.targets.logs import has_started, is_inactive, no_log, pods_of
from paddlejob.client.targets.target import LogChoice, LogLine
from paddlejob.client.targets.view import job_view
from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.objects.resources import PADDLEJOBS, attempt_of

Object = dict[str, Any]
PAUSE = 1.0


async def read_first_worker(
    client: Client, namespace: str, name: str, follow: bool, flags: str = ""
) -> AsyncIterator[LogLine]:
    """Pods of earlier attempts are usually deleted, and their logs with them."""
    read: set[str] = set()
    while True:
        try:
            job = await client.get(PADDLEJOBS, name, namespace)
        except NotFound:
            return
        view, pods = job_view(job), await pods_of(client, job)
        for pod in _first_workers(pods):
            if pod["metadata"]["uid"] not in read:
                read.add(pod["metadata"]["uid"])
                async for line in _lines(client, pod, follow):
                    yield line
        if not follow or is_inactive(view.job):
            break
        await asyncio.sleep(PAUSE)
    if not read:
        raise no_log(view, removed=not pods, flags=flags)


def _first_workers(pods: list[Object]) -> list[Object]:
    """Those whose program has started, by attempt. The pods are sorted by index."""
    found: dict[int, Object] = {}
    for pod in pods:
        if pod["metadata"]["labels"].get(contract.LABEL_ROLE) == Role.WORKER:
            found.setdefault(attempt_of(pod), pod)
    return [found[attempt] for attempt in sorted(found) if has_started(found[attempt], LogChoice())]


async def _lines(client: Client, pod: Object, follow: bool) -> AsyncIterator[LogLine]:
    attempt = attempt_of(pod)
    read = pod_log.follow_timed if follow else pod_log.read_timed
    async for timestamp, text in read(client, pod, LogChoice()):
        moment = None
        with suppress(ValueError):
            moment = pod_log.moment(timestamp)
        yield LogLine(attempt, text.decode(errors="replace"), moment)
