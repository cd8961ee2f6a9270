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
from paddlejob.kube.answers import error_of
from paddlejob.kube.resource import Object, Objects, Resource
from paddlejob.kube.transport import Observe, Request, Transport

PAGE = 500
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
# The server sends a bookmark about every minute, so a longer silence is a dead connection.
LONGEST_SILENCE = 150.0

Propagation = Literal["Background", "Foreground", "Orphan"]

# What has no kind of its own: the version of the server and the lists of what it serves.
SERVER = Resource("", "", "server", namespaced=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, and the resource version at which the whole list was taken."""

    items: list[Object]
    version: str


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a watch; `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


class Client:
    """One API server, open inside `async with`. Every error is of the tree in paddlejob.errors.

    We set no limit on requests: the server's 429 and Retry-After are obeyed instead. While `may_write` says
    no, every write raises NotLeader before it is sent; the client that a lease itself uses has none.
    `observe(verb, resource, code, seconds)` hears of every exchange; code 0 is no answer.
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
        """All objects of a namespace, or of the cluster, as of one moment."""
        try:
            return await self._gathered(resource, namespace, label_selector, field_selector, PAGE)
        except Gone:
            # The snapshot was compacted between two pages; a list in one piece cannot suffer that.
            return await self._gathered(resource, namespace, label_selector, field_selector, 0)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        size: int = PAGE,
    ) -> AsyncGenerator[Page, None]:
        """A consistent list in pages, so that a long one is never in memory at once; size 0 is one page."""
        params = _chosen(label_selector, field_selector)
        if size:
            params["limit"] = str(size)
        path = resource.collection(namespace)
        while True:
            answer = await self._do(Request("list", resource, "GET", path, dict(params)))
            metadata = answer["metadata"]
            yield Page(answer.get("items") or [], metadata["resourceVersion"])
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
    ) -> AsyncGenerator[Change, None]:
        """The changes after `version` until the server ends the stream; Gone where that is too old.

        `opened` is called when the server has accepted the watch, which may be long before the first change.
        Who stops reading early closes it (contextlib.aclosing), else its connection stays open.
        """
        params = _chosen(label_selector, "") | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        request = Request("watch", resource, "GET", resource.collection(namespace), params)
        async with aclosing(self._transport.lines(request, idle=LONGEST_SILENCE, opened=opened)) as lines:
            async for line in lines:
                if line:
                    yield _change(line, request)

    async def lines(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        subresource: str,
        params: dict[str, str] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a subresource that is text, as they come: `log` of a pod. Close it to end it early."""
        path = resource.item(name, namespace, subresource)
        request = Request("get", resource, "GET", path, params or {})
        async with aclosing(self._transport.lines(request)) as lines:
            async for line in lines:
                yield line

    async def read(self, path: str) -> Object:
        """What the server says of itself, such as /version or /apis/apps/v1."""
        return await self._do(Request("get", SERVER, "GET", path))

    async def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """With `dry_run` the server checks everything and stores nothing."""
        path = resource.collection(_namespace(resource, obj))
        params = {"dryRun": "All"} if dry_run else {}
        return await self._do(Request("create", resource, "POST", path, params, orjson.dumps(obj)))

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, dry_run: bool = False
    ) -> Object:
        """Create the object, or change it to have every field of `obj`, and none that `manager` set before.

        Without `force`, a field that another manager holds with another value is a Conflict.
        """
        path = resource.item(obj["metadata"]["name"], _namespace(resource, obj))
        params = {"fieldManager": manager, "force": str(force).lower()} | ({"dryRun": "All"} if dry_run else {})
        # JSON is YAML, and the only form that keeps every value as it is.
        return await self._do(Request("apply", resource, "PATCH", path, params, orjson.dumps(obj), APPLY_PATCH))

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Write the whole object; with a resourceVersion in it, only over that version (else Conflict)."""
        path = resource.item(obj["metadata"]["name"], _namespace(resource, obj), subresource)
        return await self._do(Request("update", resource, "PUT", path, body=orjson.dumps(obj)))

    async def replace_status(self, resource: Resource, obj: Object) -> Object:
        return await self.replace(resource, obj, subresource="status")

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        changes: Object | Objects,
        *,
        subresource: str = "",
    ) -> Object:
        """A merge patch where `changes` is a dict, a JSON patch where it is a list of operations."""
        path = resource.item(name, namespace, subresource)
        kind = JSON_PATCH if isinstance(changes, list) else MERGE_PATCH
        request = Request("patch", resource, "PATCH", path, body=orjson.dumps(changes), content_type=kind)
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
        """Delete an object; with `uid`, only that very one (else Conflict). Returns the server's answer."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        path = resource.item(name, namespace)
        return await self._do(Request("delete", resource, "DELETE", path, body=orjson.dumps(options)))

    async def _gathered(
        self, resource: Resource, namespace: str | None, labels: str, fields: str, size: int
    ) -> Objects:
        pages = self.pages(resource, namespace, label_selector=labels, field_selector=fields, size=size)
        return [item async for page in pages for item in page.items]

    async def _do(self, request: Request) -> Object:
        return _object(await self._transport.exchange(request), request)


def _chosen(label_selector: str, field_selector: str) -> dict[str, str]:
    chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in chosen.items() if value}


def _namespace(resource: Resource, obj: Object) -> str | None:
    if not resource.namespaced:
        return None
    namespace: str = obj["metadata"].get("namespace", "")
    if not namespace:
        raise ValueError(f"{resource}: metadata.namespace is empty")
    return namespace


def _object(body: bytes, request: Request) -> Object:
    try:
        answer: Object = orjson.loads(body)
    except orjson.JSONDecodeError as fault:
        raise Unreachable(f"{request}: the answer is not JSON ({fault}); is a proxy in between?") from fault
    return answer


def _change(line: bytes, request: Request) -> Change:
    event = _object(line, request)
    if event["type"] == "ERROR":
        raise error_of(500, orjson.dumps(event["object"]), {}, str(request))
    return Change(event["type"], event["object"])
