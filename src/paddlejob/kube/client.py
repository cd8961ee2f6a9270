"""The verbs of the Kubernetes API, on plain dicts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import orjson

from paddlejob.errors import Gone, Unreachable
from paddlejob.kube.access import Access
from paddlejob.kube.api_errors import api_error
from paddlejob.kube.resource import Object, Objects, Resource
from paddlejob.kube.transport import JSON, METADATA, METADATA_LIST, Observe, Request, Transport

PAGE = 500
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
# In bytes; far more than any object has, so that no event is cut.
LONGEST_EVENT = 256 << 20
# The server sends a bookmark about every minute, so a longer pause means a dead connection.
WATCH_IDLE_SECONDS = 150.0

Propagation = Literal["Background", "Foreground", "Orphan"]

# For paths that belong to no resource: the server's version and its discovery documents.
SERVER = Resource("", "", "server", namespaced=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list, and the resource version of the whole list."""

    items: list[Object]
    version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch; `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


class Client:
    """A client of one API server, open inside `async with`. It raises only errors of the tree in paddlejob.errors.

    There is no client-side rate limit: the server's 429 and Retry-After are obeyed instead. While `may_write` returns
    False, every write raises NotLeader before it is sent; the client that elects the leader has no `may_write`.
    `observe(verb, resource, code, seconds)` is called after every request, with the time until the server
    responded; code 0 means no response.
    """

    def __init__(
        self,
        access: Access,
        *,
        may_write: Callable[[], bool] = lambda: True,
        observe: Observe | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.access = access
        self._transport = Transport(access, may_write, observe, timeout)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    def server_time(self) -> float:
        """Seconds since the epoch by the clock of the API server, which writes the times of all objects."""
        return self._transport.clock.now()

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        return await self._do(Request("get", resource, "GET", resource.item(name, namespace)))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Objects:
        """All objects of a namespace, or of the cluster, as of one resource version."""
        try:
            return await self._all_pages(resource, namespace, label_selector, field_selector, PAGE)
        except Gone:
            # The list was compacted between two pages; that cannot happen to a list in one page.
            return await self._all_pages(resource, namespace, label_selector, field_selector, 0)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        size: int = PAGE,
        metadata_only: bool = False,
    ) -> AsyncGenerator[Page, None]:
        """A consistent list in pages, so that a long one is never in memory at once; size 0 means one page."""
        params = _selectors(label_selector, field_selector)
        if size:
            params["limit"] = str(size)
        path, accept = resource.collection(namespace), METADATA_LIST if metadata_only else JSON
        while True:
            page = await self._do(Request("list", resource, "GET", path, dict(params), accept=accept))
            metadata = page["metadata"]
            # The metrics API has no versions.
            yield Page(page.get("items") or [], metadata.get("resourceVersion", ""))
            if not metadata.get("continue"):
                return
            params["continue"] = metadata["continue"]

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        version: str,
        label_selector: str = "",
        seconds: int = 300,
        opened: Callable[[], None] = lambda: None,
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchEvent, None]:
        """The events after `version` until the server ends the stream; raises Gone if that version is too old.

        `opened` is called when the server has accepted the watch, which may be long before the first event.
        Close the generator (contextlib.aclosing) to stop early, or its connection stays open.
        """
        params = _selectors(label_selector, "") | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        accept = METADATA if metadata_only else JSON
        request = Request("watch", resource, "GET", resource.collection(namespace), params, accept=accept)
        watched = self._transport.lines(request, idle=WATCH_IDLE_SECONDS, opened=opened, longest=LONGEST_EVENT)
        async with aclosing(watched) as lines:
            async for line in lines:
                if line:
                    yield _watch_event(line, request)

    async def lines(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        subresource: str,
        params: dict[str, str] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a text subresource as they arrive, such as a pod's `log`. Close the generator to stop early."""
        path = resource.item(name, namespace, subresource)
        request = Request("get", resource, "GET", path, params or {})
        async with aclosing(self._transport.lines(request)) as lines:
            async for line in lines:
                yield line

    async def read(self, path: str) -> Object:
        """A document of the server about itself, such as /version or /apis/apps/v1."""
        return await self._do(Request("get", SERVER, "GET", path))

    async def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Create an object; with `dry_run` the server validates it and stores nothing."""
        path = resource.collection(_namespace(resource, obj))
        params = {"dryRun": "All"} if dry_run else {}
        return await self._do(Request("create", resource, "POST", path, params, orjson.dumps(obj)))

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, dry_run: bool = False
    ) -> Object:
        """Server-side apply: create or update the object, and remove fields that `manager` no longer sets.

        Without `force`, a field that another manager owns with another value is a Conflict.
        """
        path = resource.item(obj["metadata"]["name"], _namespace(resource, obj))
        params = {"fieldManager": manager, "force": str(force).lower()} | ({"dryRun": "All"} if dry_run else {})
        # JSON is YAML, and keeps every value as it is.
        return await self._do(Request("apply", resource, "PATCH", path, params, orjson.dumps(obj), APPLY_PATCH))

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Replace the whole object; if it has a resourceVersion that is not the current one, that is a Conflict."""
        path = resource.item(obj["metadata"]["name"], _namespace(resource, obj), subresource)
        return await self._do(Request("update", resource, "PUT", path, body=orjson.dumps(obj)))

    async def replace_status(self, resource: Resource, obj: Object) -> Object:
        return await self.replace(resource, obj, subresource="status")

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        changes: Object,
        *,
        subresource: str = "",
    ) -> Object:
        """Change some fields by a JSON merge patch; None removes a field."""
        path = resource.item(name, namespace, subresource)
        request = Request("patch", resource, "PATCH", path, body=orjson.dumps(changes), content_type=MERGE_PATCH)
        return await self._do(request)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> Object:
        """Delete an object and return the response; if its uid is not `uid`, that is a Conflict."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        path = resource.item(name, namespace)
        return await self._do(Request("delete", resource, "DELETE", path, body=orjson.dumps(options)))

    async def _all_pages(
        self, resource: Resource, namespace: str | None, labels: str, fields: str, size: int
    ) -> Objects:
        pages = self.pages(resource, namespace, label_selector=labels, field_selector=fields, size=size)
        return [item async for page in pages for item in page.items]

    async def _do(self, request: Request) -> Object:
        return _object(await self._transport.exchange(request), request)


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in selectors.items() if value}


def _namespace(resource: Resource, obj: Object) -> str | None:
    if not resource.namespaced:
        return None
    namespace: str = obj["metadata"].get("namespace", "")
    if not namespace:
        raise ValueError(f"{resource}: metadata.namespace is empty")
    return namespace


def _object(body: bytes, request: Request) -> Object:
    try:
        obj: Object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"{request}: the response is not JSON ({error}); is there a proxy in between?") from error
    return obj


def _watch_event(line: bytes, request: Request) -> WatchEvent:
    event = _object(line, request)
    if event["type"] == "ERROR":
        raise api_error(500, orjson.dumps(event["object"]), {}, str(request))
    return WatchEvent(event["type"], event["object"])
