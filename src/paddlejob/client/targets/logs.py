"""The logs of the pods of a job on a cluster: one pod after another, or followed across restarts."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from paddlejob import contract
from paddlejob.api.types import CleanPodPolicy, PaddleJob, Phase, Role, deletes_pods
from paddlejob.client.targets import pod_log
from paddlejob.client.targets.target import JobView, LastOutput, LogChoice
from paddlejob.client.targets.view import job_view, training_state
from paddlejob.errors import BadInput, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS, attempt_of, owner_of

Object = dict[str, Any]
PAUSE = 1.0
QUEUE_SIZE = 1000
QUIET_SECONDS = 5.0
"""An inactive job that prints nothing for this long is done, although its parameter servers may still run."""
MOST_ASKED = 20
"""Replicas that are asked for their last line; a large job would take too long otherwise."""


def is_inactive(job: PaddleJob) -> bool:
    """Whether no pod starts any more. A job that lost its quota is suspended too, but continues by itself."""
    return job.status.finished or (job.status.phase is Phase.SUSPENDED and job.spec.suspend)


async def pods_of(client: Client, job: Object) -> list[Object]:
    """The pods that the job owns, parameter servers first, by index."""
    metadata = job["metadata"]
    selector = f"{contract.LABEL_JOB}={metadata['name']}"
    pods = await client.list(PODS, metadata["namespace"], label_selector=selector)
    return sorted((pod for pod in pods if owner_of(pod) == metadata["uid"]), key=_rank)


async def read_logs(
    client: Client, namespace: str, name: str, choice: LogChoice, flags: str = ""
) -> AsyncIterator[bytes]:
    """The lines written so far. The flags select this cluster and namespace in commands that a message names."""
    job = await client.get(PADDLEJOBS, name, namespace)
    every = await pods_of(client, job)
    pods = [pod for pod in select_pods(every, choice) if has_started(pod, choice)]
    if not pods:
        raise no_log(job_view(job), removed=not every, flags=flags)
    for pod in pods:
        async for line in pod_log.read(client, pod, choice):
            yield format_line(pod, line, len(pods) > 1)


def no_log(view: JobView, removed: bool, flags: str) -> BadInput:
    """Why a job has no such log; `removed` says that it has no pods."""
    job, phase = view.job, view.job.status.phase
    if removed and phase and deletes_pods(job.spec.clean, phase):
        kept_with = " or ".join(policy for policy in reversed(CleanPodPolicy) if not deletes_pods(policy, phase))
        return BadInput(
            f"job {job.name} has ended ({view.phase}) and its pods were removed with their logs (cleanPodPolicy: "
            f"{job.spec.clean}); to keep them, set cleanPodPolicy to {kept_with} and run the job again"
        )
    return BadInput(f"job {job.name} has no such log; list its replicas with `pdj get {job.name}{flags}`")


async def last_output(client: Client, pods: list[Object]) -> LastOutput | None:
    """The newest line of the replicas that have started, by the timestamps of their node."""
    started = [pod for pod in pods if has_started(pod, LogChoice())]
    workers_first = sorted(started, key=lambda pod: _label(pod, contract.LABEL_ROLE) != Role.WORKER)[:MOST_ASKED]
    times = await asyncio.gather(*(pod_log.last_time(client, pod) for pod in workers_first))
    found = [LastOutput(_replica(pod), time) for pod, time in zip(workers_first, times, strict=True) if time]
    return max(found, key=lambda output: output.time, default=None)


async def follow_logs(
    client: Client, namespace: str, name: str, choice: LogChoice, flags: str = ""
) -> AsyncIterator[bytes]:
    """New lines until the job is inactive; pods that start later are read from their beginning."""
    follower = _Follower(client, namespace, name, choice)
    checked, quiet = 0.0, 0.0
    try:
        while not follower.finished(quiet):
            if not follower.inactive and time.monotonic() - checked >= PAUSE:
                await follower.check()
                checked = time.monotonic()
            if line := await follower.next_line(PAUSE):
                yield line
            quiet = 0.0 if line else quiet + PAUSE
            follower.raise_errors()
    finally:
        follower.close()
    if follower.view and not follower.started:
        raise no_log(follower.view, removed=follower.removed, flags=flags)


class _Follower:
    """One reader task per pod; all of them write to one queue."""

    def __init__(self, client: Client, namespace: str, name: str, choice: LogChoice) -> None:
        self.client = client
        self.namespace = namespace
        self.name = name
        self.choice = choice
        self.inactive = False
        self.view: JobView | None = None
        self.removed = False
        """The job has no pods."""
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(QUEUE_SIZE)
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._unreachable = False

    @property
    def started(self) -> bool:
        """Whether any log was found."""
        return bool(self._readers)

    def finished(self, quiet: float) -> bool:
        done = quiet >= QUIET_SECONDS or all(reader.done() for reader in self._readers.values())
        return self.inactive and self._lines.empty() and done

    async def check(self) -> None:
        """Look at the job once; an unreachable cluster is retried because training continues without it."""
        try:
            await self._start_readers()
            self._unreachable = False
        except pod_log.RETRYABLE as error:
            if not self._unreachable:
                print(f"pdj: {error}; retrying (press Ctrl-C to stop)", file=sys.stderr, flush=True)
            self._unreachable = True

    async def _start_readers(self) -> None:
        """Read the pods that have started since the last check."""
        try:
            job = await self.client.get(PADDLEJOBS, self.name, self.namespace)
        except NotFound:
            self.inactive, self.view = True, None
            return
        self.view = view = job_view(job)
        prefixed = self.choice.index is None and view.job.spec.pods_wanted > 1
        pods = await pods_of(self.client, job)
        self.removed = not pods
        for pod in select_pods(pods, self.choice):
            uid = pod["metadata"]["uid"]
            if uid not in self._readers and has_started(pod, self.choice):
                self._readers[uid] = asyncio.create_task(self._read(pod, prefixed))
        self.inactive = is_inactive(view.job)

    async def _read(self, pod: Object, prefixed: bool) -> None:
        async for line in pod_log.follow(self.client, pod, self.choice):
            await self._lines.put(format_line(pod, line, prefixed))

    async def next_line(self, seconds: float) -> bytes:
        """The next line; empty if none arrives in time."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._lines.get(), seconds)
        return b""

    def raise_errors(self) -> None:
        for reader in self._readers.values():
            if reader.done():
                reader.result()

    def close(self) -> None:
        for reader in self._readers.values():
            reader.cancel()


def select_pods(pods: list[Object], choice: LogChoice) -> list[Object]:
    """The pods of the chosen attempt, by default of the latest."""
    attempt = choice.attempt or max(map(attempt_of, pods), default=0)
    return [
        pod
        for pod in pods
        if attempt_of(pod) == attempt
        and choice.role in ("", _label(pod, contract.LABEL_ROLE))
        and choice.index in (None, int(_label(pod, contract.LABEL_INDEX)))
    ]


def has_started(pod: Object, choice: LogChoice) -> bool:
    """Whether the chosen container, by default the one that trains, has started."""
    state = training_state(pod, choice.container)
    return "running" in state or "terminated" in state


def format_line(pod: Object, line: bytes, prefixed: bool) -> bytes:
    """Of a progress bar, which would overwrite the prefix, only the last state."""
    if not prefixed:
        return line + b"\n"
    states = [state for state in line.split(b"\r") if state.strip()] or [line]
    return b"[%s] %s\n" % (_replica(pod).encode(), states[-1])


def _replica(pod: Object) -> str:
    return f"{_label(pod, contract.LABEL_ROLE)}-{_label(pod, contract.LABEL_INDEX)}"


def _label(pod: Object, label: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(label, "0"))


def _rank(pod: Object) -> tuple[int, int]:
    roles = [str(role) for role in Role]
    role = _label(pod, contract.LABEL_ROLE)
    return roles.index(role) if role in roles else len(roles), int(_label(pod, contract.LABEL_INDEX))
