"""Jobs on a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from paddlejob import contract
from paddlejob.api.change import with_fields
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, Forbidden, NoSuchJob, NotFound, NotPossible, Overloaded, Unreachable
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, EVENTS
from paddlejob.logs.follow import LogPiece
from paddlejob.logs.job_pods import first_worker_lines, last_output
from paddlejob.logs.line import LogLine
from paddlejob.logs.search import Matches
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.series import LineParser, LoggedSample, Series
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.plan.names import environment_prefix
from paddlejob.targets.capacity import MachineInfo
from paddlejob.targets.cluster.cluster_meter import ClusterMeter
from paddlejob.targets.cluster.job_logs import PAGE_LINES, JobLogs, SeriesCache
from paddlejob.targets.cluster.job_watch import JobWatch
from paddlejob.targets.cluster.operators import find_operators, unavailable_message, unwatched_message
from paddlejob.targets.cluster.parsing import job_view, pods_of
from paddlejob.targets.cluster.pod_meter import PodMeter
from paddlejob.targets.log_views import LastLines, LastOutput, LogRef, LogStream
from paddlejob.targets.sync import run_outside_loop
from paddlejob.targets.target import DELETE_TIMEOUT, OnRetry, ignore, no_such_job, require_unfinished
from paddlejob.targets.views import JobView, Usage

Object = dict[str, Any]
T = TypeVar("T")
VIEW_SECONDS = 0.7
"""While jobs are watched, a view is shared by all who ask for it within this time."""


class ClusterTarget:
    name = "cluster"
    remembered_namespace = ""
    pause = 1.0

    def __init__(self, context: str = "") -> None:
        self.access = find_access(context=context or None)
        self.default_namespace = self.access.namespace
        self.context_flag = f" --context {shlex.quote(context)}" if context else ""
        self._watch: JobWatch | None = None
        self._client: Client | None = None
        """The connection while jobs are watched."""
        self._views: dict[Key, tuple[float, JobView]] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self._usage = PodMeter()
        self._meter = ClusterMeter()
        self._series = SeriesCache()

    @property
    def address(self) -> str:
        return self.access.server

    @property
    def problem(self) -> str:
        if self._watch is None:
            return "connecting"
        return str(self.not_installed()) if self._watch.absent else self._watch.problem

    @property
    def watched_namespace(self) -> str:
        return self._watch.namespace if self._watch else ""

    def flags(self, namespace: str = "") -> str:
        flags = self.context_flag or " --cluster"
        return flags if namespace in ("", self.default_namespace) else f"{flags} -n {namespace}"

    def start_command(self, namespace: str = "") -> str:
        option = "" if namespace in ("", self.default_namespace) else f" -n {namespace}"
        return f"pdj submit FILE{self.context_flag}{option}"

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Client]:
        """That of `watch`, or one for this request."""
        if self._client is not None:
            yield self._client
            return
        async with Client(self.access) as client:
            yield client

    def with_client(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Run a coroutine that talks to the API server, for callers without an event loop."""

        async def run() -> T:
            async with self.connection() as client:
                return await request(client)

        return run_outside_loop(run())

    async def watch(self, namespace: str = "") -> None:
        self._watch = JobWatch(namespace)
        try:
            async with Client(self.access) as client:
                self._client = client
                await self._watch.run(client, self.default_namespace)
        finally:
            self._client = None

    async def jobs(self, namespace: str | None) -> list[JobView]:
        """Users who may not list all namespaces get the jobs in the namespace of their context."""
        if self._watch is not None:
            return [view for view in self._watch.views() if namespace in (None, view.job.namespace)]
        async with self.connection() as client:
            try:
                jobs = await client.list(PADDLEJOBS, namespace)
            except Forbidden:
                if namespace:
                    raise
                jobs = await client.list(PADDLEJOBS, self.default_namespace)
            except NotFound as error:
                raise self.not_installed() from error
        return [job_view(job, flags=self.flags(job["metadata"]["namespace"])) for job in jobs]

    async def job(self, namespace: str, name: str) -> JobView:
        """While jobs are watched and the cluster does not answer, the job as it was last seen."""
        if self._watch is None:
            return await self._read(namespace, name)
        key = (namespace, name)
        async with self._locks.setdefault(key, asyncio.Lock()):
            seen = self._views.get(key)
            if seen and time.monotonic() - seen[0] < VIEW_SECONDS:
                return seen[1]
            try:
                view = await self._read(namespace, name)
            except (Unreachable, Overloaded) as error:
                if seen is None:
                    raise
                return replace(seen[1], note=f"{error}; shown as last seen")
            except NoSuchJob:
                self._views.pop(key, None)
                self._locks.pop(key, None)
                raise
            self._views[key] = (time.monotonic(), view)
            return view

    async def _read(self, namespace: str, name: str) -> JobView:
        async with self.connection() as client:
            job = await self._get(client, namespace, name)
            pods = await pods_of(client, job)
            events = await _events(client, job, {pod["metadata"]["name"] for pod in pods})
            return job_view(job, pods, events, await self._note(client, job), self.flags(namespace))

    async def usage(self, view: JobView) -> dict[str, Usage]:
        async with self.connection() as client:
            return await self._usage.read(client, view)

    async def capacity(self, namespace: str = "") -> MachineInfo:
        async with self.connection() as client:
            views = await self.jobs(namespace or None)
            return await self._meter.read(client, self.address, namespace or self.watched_namespace, views)

    async def last_output(self, view: JobView) -> LastOutput | None:
        async with self._logs(view.job.namespace, view.job.name) as (client, logs):
            seen = await logs.look()
            found = await last_output(client, seen.pods) if seen else None
        return LastOutput(*found) if found else None

    @asynccontextmanager
    async def _logs(self, namespace: str, name: str) -> AsyncIterator[tuple[Client, JobLogs]]:
        async with self.connection() as client:
            yield client, JobLogs(client, (namespace, name), self.flags(namespace))

    async def logs(
        self, namespace: str, name: str, selection: LogSelection, follow: bool = False, on_retry: OnRetry = ignore
    ) -> LogStream:
        if selection.run:
            raise BadInput(
                "--run: a cluster keeps no previous runs; keep the logs of a job with `pdj logs -f JOB --save DIR`"
            )
        async with self.connection() as client:
            job = job_view(await self._get(client, namespace, name)).job

        async def batches() -> AsyncGenerator[list[LogLine], None]:
            async with self._logs(namespace, name) as (_, logs):
                if not follow:
                    async for batch in logs.read(selection):
                        yield batch
                    return
                async with aclosing(logs.follow(selection, on_retry)) as lines:
                    async for line in lines:
                        yield [line]

        return LogStream(selection.several(job.spec), batches())

    async def samples(
        self, namespace: str, name: str, follow: bool = False
    ) -> AsyncGenerator[list[LoggedSample], None]:
        """Times are those of the node."""
        async with self._logs(namespace, name) as (client, logs):
            parser = LineParser(job_view(await self._get(client, namespace, name)).job.spec.progress)
            async with aclosing(first_worker_lines(client, logs.look, follow, self.flags(namespace))) as lines:
                async for line in lines:
                    if found := list(parser.samples([line])):
                        yield found

    async def series(self, namespace: str, name: str, first: int = -1) -> Series:
        async with self._logs(namespace, name) as (client, logs):
            return await self._series.read(logs, client, (namespace, name), first)

    async def spark(self, namespace: str, name: str) -> tuple[float, ...] | None:
        return None

    async def last_lines(self, view: JobView, count: int) -> LastLines:
        async with self._logs(view.job.namespace, view.job.name) as (_, logs):
            return await logs.last_lines(view, count)

    async def log_refs(self, namespace: str, name: str) -> list[LogRef]:
        async with self._logs(namespace, name) as (_, logs):
            return await logs.refs()

    async def log_pieces(
        self, namespace: str, name: str, selection: LogSelection
    ) -> AsyncGenerator[list[LogPiece], None]:
        async with self._logs(namespace, name) as (_, logs):
            async for pieces in logs.pieces(replace(selection, tail=PAGE_LINES)):
                yield pieces

    async def search(self, namespace: str, name: str, selection: LogSelection, pattern: str) -> Matches:
        async with self._logs(namespace, name) as (_, logs):
            return await logs.search(selection, pattern)

    async def download(self, namespace: str, name: str, selection: LogSelection) -> AsyncGenerator[bytes, None]:
        async with self._logs(namespace, name) as (_, logs):
            async for block in logs.download(selection):
                yield block

    async def delete(self, namespace: str, name: str, wait: bool) -> str:
        async with self.connection() as client:
            job = await self._get(client, namespace, name)
            await client.delete(PADDLEJOBS, name, namespace, uid=job["metadata"]["uid"], propagation="Background")
            if not wait:
                return f"{name} is being deleted"
            await wait_until_deleted(client, job)
            return f"{name} deleted"

    async def change(self, namespace: str, name: str, **fields: Any) -> None:
        async with self.connection() as client:
            job = await self._get(client, namespace, name)
            require_unfinished(job_view(job))
            with_fields(job, fields)
            await client.patch(PADDLEJOBS, name, namespace, {"spec": fields})

    def not_installed(self) -> NotPossible:
        """The error for a cluster without the CustomResourceDefinition of PaddleJob."""
        return NotPossible(
            f"the cluster at {self.access.server} has no {CRDS.kind} {contract.PLURAL}.{contract.GROUP}; "
            f"install it and the operator with `pdj install{self.context_flag}`"
        )

    async def _get(self, client: Client, namespace: str, name: str) -> Object:
        try:
            return await client.get(PADDLEJOBS, name, namespace)
        except NotFound as error:
            try:
                others = [str(job["metadata"]["name"]) for job in await client.list(PADDLEJOBS, namespace)]
            except NotFound:
                raise self.not_installed() from error
            raise no_such_job(self, namespace, name, others) from None

    async def _note(self, client: Client, job: Object) -> str:
        """Why no operator handles the job; empty if its status shows that one does."""
        status, namespace = job.get("status") or {}, job["metadata"]["namespace"]
        if status.get("completionTime"):
            return ""
        operators = await find_operators(client)
        if message := unwatched_message(operators, namespace, self.context_flag):
            return message
        stale = status.get("observedGeneration", 0) < job["metadata"].get("generation", 0)
        return unavailable_message(operators, namespace) if stale else ""


async def wait_until_deleted(client: Client, job: Object) -> None:
    name = job["metadata"]["name"]
    deadline = time.monotonic() + DELETE_TIMEOUT
    while remaining := [pod["metadata"]["name"] for pod in await pods_of(client, job)] or await _same_job(client, job):
        if time.monotonic() > deadline:
            raise NotPossible(f"job {name}: {', '.join(remaining)} still not deleted after {DELETE_TIMEOUT:.0f} s")
        await asyncio.sleep(0.3)


async def _same_job(client: Client, job: Object) -> list[str]:
    """The job itself if it still exists."""
    metadata = job["metadata"]
    try:
        current = await client.get(PADDLEJOBS, metadata["name"], metadata["namespace"])
    except NotFound:
        return []
    return [f"job {metadata['name']}"] if current["metadata"]["uid"] == metadata["uid"] else []


async def _events(client: Client, job: Object, pods: set[str]) -> list[Object]:
    """Events of the job and warnings about its pods; empty when the caller may not list events."""
    metadata = job["metadata"]
    namespace = metadata["namespace"]
    try:
        own = await client.list(EVENTS, namespace, field_selector=f"involvedObject.uid={metadata['uid']}")
        warnings = await client.list(EVENTS, namespace, field_selector="involvedObject.kind=Pod,type=Warning")
    except Forbidden:
        return []
    about_pods = [event for event in warnings if event["involvedObject"].get("name") in pods]
    return own + [event for event in about_pods if not _is_start_barrier(event, job)]


def _is_start_barrier(event: Object, job: Object) -> bool:
    """Every pod waits for its environment, which its kubelet reports as a failure."""
    return f'configmap "{environment_prefix(job["metadata"]["name"])}' in str(event.get("message"))
