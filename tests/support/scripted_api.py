"""An API server in memory that answers as a test scripts it, and records every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Object = dict[str, Any]


@dataclass
class Asked:
    """A request as it arrived; `path` has no leading /api part, only namespace, plural, name and subresource."""

    method: str
    path: str
    body: Object = field(default_factory=dict)


class ScriptedApi:
    """Stores what is created, and deletes at once. `answers[method, path]` replaces the answer to a request.

    Watches deliver nothing: what a test sees, it sees through the responses to the operator's own requests.
    """

    def __init__(self, *objects: tuple[str, Object]) -> None:
        self.objects: dict[str, Object] = {}
        self.asked: list[Asked] = []
        self.answers: dict[tuple[str, str], tuple[int, Object] | Callable[[Object], tuple[int, Object]]] = {}
        self.watches_end = asyncio.Event()
        self.kueue: set[str] = set()
        """The versions of Kueue's API that are served."""
        self._version = 100
        for path, obj in objects:
            self.put(path, obj)

    def put(self, path: str, obj: Object) -> Object:
        self._version += 1
        name = path.rpartition("/")[2]
        metadata = {"uid": f"uid-of-{name}", "creationTimestamp": "2027-01-15T08:00:00Z", **obj.get("metadata", {})}
        metadata |= {"resourceVersion": str(self._version), "name": name}
        self.objects[path] = {**obj, "metadata": metadata}
        return self.objects[path]

    def written(self, method: str, part: str = "") -> list[Asked]:
        return [one for one in self.asked if one.method == method and part in one.path]

    async def respond(self, request: web.Request) -> web.StreamResponse:
        path = _short(request.path)
        if "watch" in request.query:
            await self.watches_end.wait()
        body = json.loads(await request.text() or "{}")
        if request.method != "GET":
            self.asked.append(Asked(request.method, path, body))
        answer = self.answers.get((request.method, path))
        if answer is not None:
            code, found = answer(body) if callable(answer) else answer
        else:
            code, found = self._answer(request.method, path, body)
        if "kueue.x-k8s.io" in request.path and request.path.split("/")[3] not in self.kueue:
            code, found = failure(404, "NotFound")
        return web.json_response(found, status=code)

    def _answer(self, method: str, path: str, body: Object) -> tuple[int, Object]:
        match method:
            case "POST":
                item = f"{path}/{body['metadata']['name']}"
                if item in self.objects:
                    return failure(409, "AlreadyExists")
                return 201, self.put(item, body)
            case "GET":
                return self._read(path)
        item = path.removesuffix("/status")
        if item not in self.objects:
            return failure(404, "NotFound")
        match method:
            case "PUT" if path != item:
                return 200, self.put(item, {**self.objects[item], "status": body["status"]})
            case "PUT":
                return 200, self.put(item, body)
            case "PATCH":
                return 200, self.put(item, _merged(self.objects[item], body))
            case _:
                return 200, self.objects.pop(item)

    def _read(self, path: str) -> tuple[int, Object]:
        if path in self.objects:
            return 200, self.objects[path]
        plural = path.rpartition("/")[2]
        if plural not in ("pods", "services", "configmaps", "paddlejobs", "podgroups", "workloads"):
            return failure(404, "NotFound")
        items = [obj for item, obj in self.objects.items() if item.rpartition("/")[0].rpartition("/")[2] == plural]
        return 200, {"metadata": {"resourceVersion": str(self._version)}, "items": items}


def failure(code: int, reason: str, message: str = "a message") -> tuple[int, Object]:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


def _short(path: str) -> str:
    """`default/pods/mnist-worker-0`, whatever the API group; `nodes/node-1` for what has no namespace."""
    if "/namespaces/" in path:
        return path.partition("/namespaces/")[2]
    parts = path.strip("/").split("/")
    return "/".join(parts[2:] if parts[0] == "api" else parts[3:])


def _merged(obj: Object, changes: Object) -> Object:
    merged = dict(obj)
    for name, value in changes.items():
        merged[name] = _merged(obj.get(name) or {}, value) if isinstance(value, dict) else value
    return merged
