"""Jobs on a Kubernetes cluster, for the verbs that look at jobs and change them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

from paddlejob import contract
from paddlejob.api.change import with_fields
from paddlejob.cli.install.operators import asleep, find_operators, unwatched
from paddlejob.cli.targets.logs import follow_logs, pods_of, read_logs
from paddlejob.cli.targets.target import JobView, LogChoice
from paddlejob.cli.targets.view import job_view
from paddlejob.errors import BadInput, Forbidden, NotFound, NotPossible
from paddlejob.kube.access import find_access
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, EVENTS
from paddlejob.operator.resources import PADDLEJOBS
from paddlejob.plan.names import environment_prefix

Object = dict[str, Any]
T = TypeVar("T")
GONE_WITHIN = 120.0


class ClusterTarget:
    begin = "pdj submit FILE"

    def __init__(self, context: str = "") -> None:
        self.context = context
        self.access = find_access(context=context or None)
        self.default_namespace = self.access.namespace

    def flags(self, namespace: str = "") -> str:
        place = f" --context {self.context}" if self.context else " --cluster"
        return place if namespace in ("", self.default_namespace) else f"{place} -n {namespace}"

    def asked(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Run something against the API server."""

        async def ask() -> T:
            async with Client(self.access) as client:
                return await question(client)

        return asyncio.run(ask())

    def jobs(self, namespace: str | None) -> list[JobView]:
        """A user who may not see all namespaces gets that of the context."""

        async def listed(client: Client) -> list[Object]:
            try:
                return await client.list(PADDLEJOBS, namespace)
            except Forbidden:
                if namespace:
                    raise
                return await client.list(PADDLEJOBS, self.default_namespace)
            except NotFound as error:
                raise await self._no_kind(client) from error

        return [job_view(one, flags=self.flags(one["metadata"]["namespace"])) for one in self.asked(listed)]

    def job(self, namespace: str, name: str) -> JobView:
        return self.asked(lambda client: self._whole_view(client, namespace, name))

    def logs(self, namespace: str, name: str, choice: LogChoice) -> Iterator[bytes]:
        self.asked(lambda client: self._found(client, namespace, name))

        async def stream() -> AsyncIterator[bytes]:
            async with Client(self.access) as client:
                read = follow_logs if choice.follow else read_logs
                async for line in read(client, namespace, name, choice):
                    yield line

        return _in_turn(stream())

    def delete(self, namespace: str, name: str, wait: bool) -> str:
        async def deleted(client: Client) -> str:
            job = await self._found(client, namespace, name)
            await client.delete(PADDLEJOBS, name, namespace, uid=job["metadata"]["uid"], propagation="Background")
            if not wait:
                return f"job {name} is being deleted"
            await self._until_gone(client, job)
            return f"job {name} is deleted"

        return self.asked(deleted)

    def change(self, namespace: str, name: str, **fields: Any) -> None:
        async def changed(client: Client) -> None:
            job = await self._found(client, namespace, name)
            view = job_view(job)
            if view.job.status.finished:
                raise BadInput(f"job {name} has ended ({view.phase}) and cannot be changed; run it again")
            with_fields(job, fields)
            await client.patch(PADDLEJOBS, name, namespace, {"spec": fields})

        self.asked(changed)

    async def _whole_view(self, client: Client, namespace: str, name: str) -> JobView:
        job = await self._found(client, namespace, name)
        pods = await pods_of(client, job)
        events = await _events(client, job, {pod["metadata"]["name"] for pod in pods})
        return job_view(job, pods, events, await self._note(client, job), self.flags(namespace))

    async def _found(self, client: Client, namespace: str, name: str) -> Object:
        try:
            return await client.get(PADDLEJOBS, name, namespace)
        except NotFound as error:
            try:
                others = [str(one["metadata"]["name"]) for one in await client.list(PADDLEJOBS, namespace)]
            except NotFound:
                raise await self._no_kind(client) from error
            told = f"there are: {', '.join(others)}" if others else f"there is none yet (`{self.begin}` starts one)"
            raise BadInput(f"there is no job {name} in namespace {namespace}; {told}") from None

    async def _note(self, client: Client, job: Object) -> str:
        """Whether anybody looks after the job; no word where its status shows that someone does."""
        status, namespace = job.get("status") or {}, job["metadata"]["namespace"]
        if status.get("completionTime"):
            return ""
        operators = await find_operators(client)
        unseen = status.get("observedGeneration", 0) < job["metadata"].get("generation", 0)
        return unwatched(operators, namespace, self.flags()) or (asleep(operators, namespace) if unseen else "")

    async def _no_kind(self, client: Client) -> NotPossible:
        return no_kind(self.access.server, self.flags())

    async def _until_gone(self, client: Client, job: Object) -> None:
        metadata = job["metadata"]
        ends = time.monotonic() + GONE_WITHIN
        while left := [pod["metadata"]["name"] for pod in await pods_of(client, job)] or await _same(client, metadata):
            if time.monotonic() > ends:
                raise NotPossible(
                    f"job {metadata['name']}: after {GONE_WITHIN:.0f} s there are still {', '.join(left)}"
                )
            await asyncio.sleep(0.3)


def no_kind(server: str, flags: str) -> NotPossible:
    """The cluster does not know what a PaddleJob is."""
    return NotPossible(
        f"the cluster at {server} has no {CRDS.kind} {contract.PLURAL}.{contract.GROUP}; "
        f"`pdj install{flags}` installs it with the operator"
    )


async def _same(client: Client, metadata: Object) -> list[str]:
    """The job itself, where it is still there."""
    try:
        found = await client.get(PADDLEJOBS, metadata["name"], metadata["namespace"])
    except NotFound:
        return []
    return [f"job {metadata['name']}"] if found["metadata"]["uid"] == metadata["uid"] else []


async def _events(client: Client, job: Object, pods: set[str]) -> list[Object]:
    """Those of the job, and warnings about its pods. Who may not see events gets none."""
    metadata = job["metadata"]
    try:
        own = await client.list(EVENTS, metadata["namespace"], field_selector=f"involvedObject.uid={metadata['uid']}")
        warnings = await client.list(
            EVENTS, metadata["namespace"], field_selector="involvedObject.kind=Pod,type=Warning"
        )
    except Forbidden:
        return []
    return own + [one for one in warnings if one["involvedObject"].get("name") in pods and not _is_gate(one, metadata)]


def _is_gate(event: Object, metadata: Object) -> bool:
    """Every pod waits for its environment, and its kubelet calls that a failure."""
    return f'configmap "{environment_prefix(metadata["name"])}' in str(event.get("message"))


def _in_turn(stream: AsyncIterator[bytes]) -> Iterator[bytes]:
    """An asynchronous iterator as a plain one."""

    async def next_piece() -> bytes | None:
        return await anext(stream, None)

    with asyncio.Runner() as runner:
        while (piece := runner.run(next_piece())) is not None:
            yield piece
