"""The logs of a job's pods on a cluster, one after another or as they grow, over restarts too."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from paddlejob import contract
from paddlejob.api.types import Phase, Role
from paddlejob.cli.targets import pod_log
from paddlejob.cli.targets.target import LogChoice
from paddlejob.cli.targets.view import job_view, training_state
from paddlejob.errors import BadInput, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS, attempt_of, owner_of

Object = dict[str, Any]
PAUSE = 1.0
LINES_WAITING = 1000
LINGER = 5.0
"""After this much silence a job at rest has no more to say, though its servers may run on."""
AT_REST = (Phase.COMPLETED, Phase.FAILED, Phase.SUSPENDED)


async def pods_of(client: Client, job: Object) -> list[Object]:
    """Servers first, by index."""
    metadata = job["metadata"]
    selector = f"{contract.LABEL_JOB}={metadata['name']}"
    found = await client.list(PODS, metadata["namespace"], label_selector=selector)
    return sorted((pod for pod in found if owner_of(pod) == metadata["uid"]), key=_rank)


async def read_logs(client: Client, namespace: str, name: str, choice: LogChoice) -> AsyncIterator[bytes]:
    """What has been written so far."""
    job = await client.get(PADDLEJOBS, name, namespace)
    pods = [pod for pod in chosen(await pods_of(client, job), choice) if _has_begun(pod, choice)]
    if not pods:
        raise BadInput(f"job {name} has no such log; `pdj get {name}` lists its replicas")
    for pod in pods:
        async for line in pod_log.read(client, pod, choice):
            yield _marked(pod, line, len(pods) > 1)


async def follow_logs(client: Client, namespace: str, name: str, choice: LogChoice) -> AsyncIterator[bytes]:
    """What is written, until the job rests. Pods that come later are read from their beginning.

    A cluster that does not answer is waited for: training goes on without it, and so does who watches.
    """
    lines: asyncio.Queue[bytes] = asyncio.Queue(LINES_WAITING)
    readers: dict[str, asyncio.Task[None]] = {}
    over, away, looked, silent = False, False, 0.0, 0.0
    try:
        while not (over and lines.empty() and (silent >= LINGER or all(one.done() for one in readers.values()))):
            if not over and time.monotonic() - looked >= PAUSE:
                try:
                    over = await _begin_new(client, namespace, name, choice, readers, lines)
                    away = False
                except pod_log.AWAY as error:
                    if not away:
                        print(f"pdj: {error}; waiting for it (Ctrl-C ends this)", file=sys.stderr, flush=True)
                    away = True
                looked = time.monotonic()
            if line := await _within(lines, PAUSE):
                yield line
            silent = 0.0 if line else silent + PAUSE
            for reader in [one for one in readers.values() if one.done()]:
                reader.result()
    finally:
        for reader in readers.values():
            reader.cancel()


async def _within(lines: asyncio.Queue[bytes], seconds: float) -> bytes:
    """The next line, or nothing if none comes in time."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(lines.get(), seconds)
    return b""


def chosen(pods: list[Object], choice: LogChoice) -> list[Object]:
    """Of the attempt that was asked for, else of the newest."""
    attempt = choice.attempt or max(map(attempt_of, pods), default=0)
    return [
        pod
        for pod in pods
        if attempt_of(pod) == attempt
        and choice.role in ("", _label(pod, contract.LABEL_ROLE))
        and choice.index in (None, int(_label(pod, contract.LABEL_INDEX)))
    ]


async def _begin_new(
    client: Client,
    namespace: str,
    name: str,
    choice: LogChoice,
    readers: dict[str, asyncio.Task[None]],
    lines: asyncio.Queue[bytes],
) -> bool:
    """Read the pods that have begun since; answers whether the job rests, so that no more will come."""
    try:
        job = await client.get(PADDLEJOBS, name, namespace)
    except NotFound:
        return True
    view = job_view(job)
    prefixed = choice.index is None and view.job.spec.pods_wanted > 1
    for pod in chosen(await pods_of(client, job), choice):
        uid = pod["metadata"]["uid"]
        if uid not in readers and _has_begun(pod, choice):
            readers[uid] = asyncio.create_task(_pass_on(client, pod, choice, prefixed, lines))
    return view.job.status.phase in AT_REST


async def _pass_on(client: Client, pod: Object, choice: LogChoice, prefixed: bool, lines: asyncio.Queue[bytes]) -> None:
    async for line in pod_log.follow(client, pod, choice):
        await lines.put(_marked(pod, line, prefixed))


def _has_begun(pod: Object, choice: LogChoice) -> bool:
    state = training_state(pod, choice.container)
    return "running" in state or "terminated" in state


def _marked(pod: Object, line: bytes, prefixed: bool) -> bytes:
    title = f"[{_label(pod, contract.LABEL_ROLE)}-{_label(pod, contract.LABEL_INDEX)}] " if prefixed else ""
    return title.encode() + line + b"\n"


def _label(pod: Object, label: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(label, "0"))


def _rank(pod: Object) -> tuple[int, int]:
    roles = [str(role) for role in Role]
    role = _label(pod, contract.LABEL_ROLE)
    return roles.index(role) if role in roles else len(roles), int(_label(pod, contract.LABEL_INDEX))
