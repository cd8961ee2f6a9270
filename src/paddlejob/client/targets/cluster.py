"""Jobs on a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

from paddlejob import contract
from paddlejob.api.change import with_fields
from paddlejob.client.targets.event_loop import iterate, run_outside_loop
from paddlejob.client.targets.first_worker_pod import read_first_worker
from paddlejob.client.targets.logs import follow_logs, last_output, pods_of, read_logs
from paddlejob.client.targets.operators import find_operators, unavailable_message, unwatched_message
from paddlejob.client.targets.target import (
    DELETE_TIMEOUT,
    JobView,
    LastOutput,
    LogChoice,
    LogLine,
    no_such_job,
    require_unfinished,
)
from paddlejob.client.targets.view import job_view
from paddlejob.errors import BadInput, Forbidden, NotFound, NotPossible
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, EVENTS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.plan.names import environment_prefix

Object = dict[str, Any]
T = TypeVar("T")


class ClusterTarget:
    remembered_namespace = ""

    def __init__(self, context: str = "") -> None:
        self.access = find_access(context=context or None)
        self.default_namespace = self.access.namespace
        self.context_flag = f" --context {shlex.quote(context)}" if context else ""

    @property
    def title(self) -> str:
        return f"cluster at {self.access.server}"

    def flags(self, namespace: str = "") -> str:
        flags = self.context_flag or " --cluster"
        return flags if namespace in ("", self.default_namespace) else f"{flags} -n {namespace}"

    def start_command(self, namespace: str = "") -> str:
        option = "" if namespace in ("", self.default_namespace) else f" -n {namespace}"
        return f"pdj submit FILE{self.context_flag}{option}"

    def with_client(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Run a coroutine that talks to the API server."""

        async def run() -> T:
            async with Client(self.access) as client:
                return await request(client)

        return run_outside_loop(run())

    def jobs(self, namespace: str | None) -> list[JobView]:
        """Users who may not list all namespaces get the jobs in the namespace of their context."""

        async def list_jobs(client: Client) -> list[Object]:
            try:
                return await client.list(PADDLEJOBS, namespace)
            except Forbidden:
                if namespace:
                    raise
                return await client.list(PADDLEJOBS, self.default_namespace)
            except NotFound as error:
                raise self.not_installed() from error

        return [job_view(job, flags=self.flags(job["metadata"]["namespace"])) for job in self.with_client(list_jobs)]

    def job(self, namespace: str, name: str) -> JobView:
        return self.with_client(lambda client: self.read_view(client, namespace, name))

    def logs(self, namespace: str, name: str, choice: LogChoice) -> Iterator[bytes]:
        if choice.run:
            raise BadInput(
                "--run: a cluster keeps no former runs; keep the logs of a job with `pdj logs -f JOB --save DIR`"
            )
        self.with_client(lambda client: self._get(client, namespace, name))

        async def stream() -> AsyncIterator[bytes]:
            async with Client(self.access) as client:
                read = follow_logs if choice.follow else read_logs
                async for line in read(client, namespace, name, choice, self.flags(namespace)):
                    yield line

        return iterate(stream())

    def first_worker_log(self, namespace: str, name: str, follow: bool) -> Iterator[LogLine]:
        self.with_client(lambda client: self._get(client, namespace, name))

        async def stream() -> AsyncIterator[LogLine]:
            async with Client(self.access) as client:
                async for line in read_first_worker(client, namespace, name, follow, self.flags(namespace)):
                    yield line

        return iterate(stream())

    def last_output(self, view: JobView) -> LastOutput | None:
        namespace, name = view.job.namespace, view.job.name

        async def find(client: Client) -> LastOutput | None:
            return await last_output(client, await pods_of(client, await self._get(client, namespace, name)))

        return self.with_client(find)

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        async def delete_job(client: Client) -> str:
            job = await self._get(client, namespace, name)
            await client.delete(PADDLEJOBS, name, namespace, uid=job["metadata"]["uid"], propagation="Background")
            if not wait:
                return f"{name} is being deleted"
            await wait_until_deleted(client, job)
            return f"{name} deleted"

        return self.with_client(delete_job)

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        async def change_job(client: Client) -> None:
            job = await self._get(client, namespace, name)
            require_unfinished(job_view(job))
            with_fields(job, fields)
            await client.patch(PADDLEJOBS, name, namespace, {"spec": fields})

        self.with_client(change_job)

    def not_installed(self) -> NotPossible:
        """The error for a cluster without the CustomResourceDefinition of PaddleJob."""
        return NotPossible(
            f"the cluster at {self.access.server} has no {CRDS.kind} {contract.PLURAL}.{contract.GROUP}; "
            f"install it and the operator with `pdj install{self.context_flag}`"
        )

    async def read_view(self, client: Client, namespace: str, name: str) -> JobView:
        """The same as `job`, over a connection that the caller keeps."""
        job = await self._get(client, namespace, name)
        pods = await pods_of(client, job)
        events = await _events(client, job, {pod["metadata"]["name"] for pod in pods})
        return job_view(job, pods, events, await self._note(client, job), self.flags(namespace))

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
