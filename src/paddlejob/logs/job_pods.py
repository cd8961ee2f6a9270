"""The logs of a job on a cluster: those of its pods, as far as they are kept."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.api.types import CleanPodPolicy, PaddleJob, Phase, Role, Status, deletes_pods
from paddlejob.errors import ApiError, BadInput, KubeError, NotFound, Overloaded
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS
from paddlejob.logs.line import LogLine
from paddlejob.logs.pods import PodLog, PodReader
from paddlejob.logs.selection import LogSelection
from paddlejob.objects.container_status import container_state, training_container_of
from paddlejob.objects.resources import attempt_of, labels_of
from paddlejob.plan import agents

Object = dict[str, Any]
PAUSE = 1.0
MOST_ASKED = 20
"""Replicas that are asked for their last line; a large job would take too long otherwise."""


@dataclass(frozen=True)
class JobPods:
    """A job and its pods, parameter servers first, by index."""

    job: PaddleJob
    pods: list[Object]

    @property
    def inactive(self) -> bool:
        """Whether no pod starts any more. A job that lost its quota is suspended too, but continues by itself."""
        return self.job.status.finished or (self.job.status.phase is Phase.SUSPENDED and self.job.spec.suspend)

    def no_log(self, flags: str) -> BadInput:
        """Why there is no such log; the flags select the job's cluster and namespace in commands."""
        job, phase = self.job, self.job.status.phase
        if not self.pods and phase and deletes_pods(job.spec.clean, phase):
            kept_with = " or ".join(policy for policy in reversed(CleanPodPolicy) if not deletes_pods(policy, phase))
            return BadInput(
                f"job {job.name} has ended ({phase}) and its pods were removed with their logs (cleanPodPolicy: "
                f"{job.spec.clean}); to keep them, set cleanPodPolicy to {kept_with} and run the job again"
            )
        return BadInput(f"job {job.name} has no such log; list its replicas with `pdj get {job.name}{flags}`")


Look = Callable[[], Awaitable[JobPods | None]]
"""Reads a job; None if it was deleted."""


def select_pods(pods: list[Object], selection: LogSelection, status: Status | None = None) -> list[Object]:
    """The pods of the selected attempt, by default of the latest, whose container has started."""
    attempt = selection.attempt or max(map(attempt_of, pods), default=0)
    chosen = [pod for pod in pods if attempt in attempts_of(pod, status) and selection.selects(_role(pod), _index(pod))]
    return [pod for pod in chosen if has_started(pod, selection.container)]


def attempts_of(pod: Object, status: Status | None) -> range:
    """The attempts whose output is in the log of a pod: several, if some of them began in place."""
    label = attempt_of(pod)
    return range(label, (agents.attempt_of(label, status) if status else label) + 1)


def has_started(pod: Object, container: str = "") -> bool:
    """Whether the container, by default the one that trains, has started."""
    state = container_state(pod, container)
    return "running" in state or "terminated" in state


def replica_of(pod: Object) -> str:
    return f"{_role(pod)}-{_index(pod)}"


async def read_pod(client: Client, pod: Object, selection: LogSelection) -> AsyncGenerator[LogLine, None]:
    """The selected lines written so far."""
    reader = pod_reader(client, pod, selection.container)
    async with aclosing(_for_people(_written(reader, selection), reader.log)) as lines:
        async for line in lines:
            yield line


async def follow_pod(client: Client, pod: Object, selection: LogSelection) -> AsyncGenerator[LogLine, None]:
    """The selected lines, until the container has ended."""
    reader, metadata = pod_reader(client, pod, selection.container), pod["metadata"]

    async def ended() -> bool:
        try:
            current = await client.get(PODS, metadata["name"], metadata["namespace"])
        except NotFound:
            return True
        same = current["metadata"]["uid"] == metadata["uid"]
        return not same or "terminated" in container_state(current, selection.container)

    async def selected() -> AsyncGenerator[LogLine, None]:
        tail = selection.tail
        if selection.needs_search and tail >= 0:
            tail = -1
            async for line in _written(reader, selection):
                yield line
        async for line in reader.follow(ended, tail, selection.since):
            if selection.has(line.attempt) and selection.matches(line.content):
                yield line

    async with aclosing(_for_people(selected(), reader.log)) as lines:
        async for line in lines:
            yield line


async def _written(reader: PodReader, selection: LogSelection) -> AsyncGenerator[LogLine, None]:
    """A server cannot search, so all lines are read to find the last that match."""
    searched = selection.needs_search and selection.tail >= 0
    kept: deque[LogLine] = deque(maxlen=max(0, selection.tail))
    async with aclosing(reader.lines(tail=-1 if searched else selection.tail, since=selection.since)) as lines:
        async for line in lines:
            if not selection.has(line.attempt) or not selection.matches(line.content):
                continue
            if searched:
                kept.append(line)
            else:
                yield line
    for line in kept:
        yield line


async def _for_people(lines: AsyncGenerator[LogLine, None], log: PodLog) -> AsyncGenerator[LogLine, None]:
    """Errors that a user can act on; the log of a pod that is gone is empty."""
    try:
        async with aclosing(lines) as opened:
            async for line in opened:
                yield line
    except NotFound:
        return
    except Overloaded:
        raise
    except ApiError as error:
        raise BadInput(f"cannot read the log of {log.pod}: {error.message}") from error


async def first_worker_lines(
    client: Client, look: Look, follow: bool, flags: str = ""
) -> AsyncGenerator[LogLine, None]:
    """In all attempts whose pods are kept. Those of earlier ones are usually deleted, and their logs with them."""
    read: set[str] = set()
    while (seen := await look()) is not None:
        for pod in first_workers(seen.pods):
            if pod["metadata"]["uid"] not in read:
                read.add(pod["metadata"]["uid"])
                how = follow_pod if follow else read_pod
                async with aclosing(how(client, pod, LogSelection())) as lines:
                    async for line in lines:
                        yield line
        if not follow or seen.inactive:
            if not read:
                raise seen.no_log(flags)
            return
        await asyncio.sleep(PAUSE)


def first_workers(pods: list[Object]) -> list[Object]:
    """Those whose program has started, by attempt."""
    found: dict[int, Object] = {}
    for pod in pods:
        if _role(pod) == Role.WORKER:
            found.setdefault(attempt_of(pod), pod)
    return [found[attempt] for attempt in sorted(found) if has_started(found[attempt])]


async def last_output(client: Client, pods: list[Object]) -> tuple[str, float] | None:
    """The replica that printed last, and when, by the clock of its node."""
    started = [pod for pod in pods if has_started(pod)]
    asked = sorted(started, key=lambda pod: _role(pod) != Role.WORKER)[:MOST_ASKED]
    times = await asyncio.gather(*(_last_time(client, pod) for pod in asked))
    found = [(replica_of(pod), time) for pod, time in zip(asked, times, strict=True) if time]
    return max(found, key=lambda output: output[1], default=None)


async def _last_time(client: Client, pod: Object) -> float | None:
    """None if it wrote nothing or its node does not answer."""
    last = None
    with suppress(KubeError, BadInput):
        async for line in read_pod(client, pod, LogSelection(tail=1)):
            last = line.time
    return last


def pod_reader(client: Client, pod: Object, container: str = "") -> PodReader:
    """Of a container, by default the one that trains."""
    metadata, container = pod["metadata"], container or training_container_of(pod)
    log = PodLog(metadata["namespace"], metadata["name"], container, replica_of(pod), attempt_of(pod))
    return PodReader(client, log)


def _role(pod: Object) -> str:
    return labels_of(pod).get(contract.LABEL_ROLE, "")


def _index(pod: Object) -> int:
    return int(labels_of(pod).get(contract.LABEL_INDEX, "0"))
