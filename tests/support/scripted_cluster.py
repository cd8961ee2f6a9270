"""An API server in memory that answers as a test scripts it, where a real one cannot be made to."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from paddlejob import contract
from paddlejob.api.types import Role
from paddlejob.kube.access import Access
from paddlejob.operator.manifests import NAME, NAMESPACE
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import document, job
from tests.support.pod_logs import Line, log_text

Object = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[Access]]
"""The fixture `serve`: start a server on loopback with one handler for all requests; returns the access to it."""
JOB = "default/paddlejobs/mnist"
LISTED = ("pods", "services", "configmaps", "paddlejobs", "podgroups", "workloads")


@dataclass
class Asked:
    """A request as it arrived; `path` has no leading /api part, only namespace, plural, name and subresource."""

    method: str
    path: str
    body: Object = field(default_factory=dict)


class ScriptedCluster:
    """Stores what is created, and deletes at once. `answers[method, path]` replaces the answer to a request.

    Watches deliver nothing: what a test sees, it sees through the responses to the requests of the product itself.
    """

    def __init__(self, *objects: tuple[str, Object]) -> None:
        self.objects: dict[str, Object] = {}
        self.asked: list[Asked] = []
        """Requests that change something."""
        self.tried: list[str] = []
        """The names of the objects of dry runs that no answer is scripted for; they store nothing."""
        self.queries: list[tuple[str, dict[str, str]]] = []
        """Path and query of every request."""
        self.answers: dict[tuple[str, str], tuple[int, Object] | Callable[[Object], tuple[int, Object]]] = {}
        self.watches_end = asyncio.Event()
        self.kueue: set[str] = set()
        """The versions of Kueue's API that are served."""
        self.kinds: list[Object] = []
        self.events: list[Object] = []
        self.deployments: list[Object] | None = [operator()]
        """None: the caller may not list those of all namespaces."""
        self.logs: dict[str, list[str | Line]] = defaultdict(list)
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

    def add_job(self, status: Object | None = None, name: str = "mnist", **spec: Any) -> Object:
        return self.put(f"default/paddlejobs/{name}", document(name, **spec) | {"status": status or {}})

    def add_pod(
        self, index: int = 0, *, role: str = "worker", attempt: int = 1, state: str = "running", **more: Any
    ) -> Object:
        """`state` is that of its training container; empty before its kubelet reports one."""
        made = pod_manifest(job(ps=1, workers=2), Role(role), index, attempt, "build")
        reference = {"controller": True, "uid": "uid-of-mnist", "kind": contract.KIND, "name": "mnist"}
        made["metadata"]["ownerReferences"] = [{**reference, "apiVersion": contract.API_VERSION}]
        made["metadata"] |= more
        phase = {"running": "Running", "terminated": "Succeeded"}.get(state, "Pending")
        statuses = [{"name": "paddle", "state": {state: {}}}] if state else []
        made["status"] = {"phase": phase, "containerStatuses": statuses}
        # A pod that is kept of another attempt cannot have the same name.
        return self.put(f"default/pods/{made['metadata']['name']}{f'-{attempt}' if attempt > 1 else ''}", made)

    def written(self, method: str, part: str = "") -> list[Asked]:
        return [one for one in self.asked if one.method == method and part in one.path]

    async def respond(self, request: web.Request) -> web.StreamResponse:
        path, query = _short(request.path), dict(request.query)
        self.queries.append((path, query))
        if "watch" in query:
            await self.watches_end.wait()
        body = json.loads(await request.text() or "{}")
        answer, stored = self.answers.get((request.method, path)), dict(self.objects)
        tried = "dryRun" in query and answer is None
        if tried:
            self.tried.append(str(body["metadata"]["name"]))
        elif request.method != "GET":
            self.asked.append(Asked(request.method, path, body))
        if "kueue.x-k8s.io" in request.path and request.path.split("/")[3] not in self.kueue:
            code, found = failure(404, "NotFound")
        elif answer is not None:
            code, found = answer(body) if callable(answer) else answer
        elif request.method == "GET" and path.endswith("/log"):
            return web.Response(text=log_text(self.logs[path.split("/")[-2]], query))
        else:
            code, found = self._answer(request.method, path, body, query)
        if tried:
            self.objects = stored
        return web.json_response(found, status=code)

    def _answer(self, method: str, path: str, body: Object, query: dict[str, str]) -> tuple[int, Object]:
        match method:
            case "POST":
                item = f"{path}/{body['metadata']['name']}"
                if item in self.objects:
                    return failure(409, "AlreadyExists")
                return 201, self.put(item, body)
            case "GET":
                return self._read(path, query)
            case "PATCH" if path not in self.objects and "kind" in body:
                return 201, self.put(path, body)
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

    def _read(self, path: str, query: dict[str, str]) -> tuple[int, Object]:
        if path in self.objects:
            return 200, self.objects[path]
        namespace, _, plural = path.rpartition("/")
        match plural:
            case "":
                return 200, {"resources": self.kinds}
            case "events":
                items = [one for one in self.events if _selected(one, query["fieldSelector"])]
            case "deployments" if self.deployments is not None:
                items = self.deployments
            case _ if plural in LISTED:
                items = [obj for item, obj in self.objects.items() if _within(item, namespace, plural)]
            case _:
                return failure(404, "NotFound")
        return 200, {"metadata": {"resourceVersion": str(self._version)}, "items": items}


def listed(*items: Object) -> tuple[int, Object]:
    """The answer to a list."""
    return 200, {"metadata": {"resourceVersion": "1"}, "items": list(items)}


def failure(code: int, reason: str, message: str = "a message") -> tuple[int, Object]:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


def operator(watch: str = "", available: int = 1, namespace: str = NAMESPACE, arguments: Any = None) -> Object:
    container = {"image": "operator:1", "args": arguments or (["operator", f"--namespace={watch}"] if watch else [])}
    return {
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": available},
    }


def _short(path: str) -> str:
    """`default/pods/mnist-worker-0`, whatever the API group; `nodes/node-1` for what has no namespace."""
    if "/namespaces/" in path:
        return path.partition("/namespaces/")[2]
    parts = path.strip("/").split("/")
    return "/".join(parts[2:] if parts[0] == "api" else parts[3:])


def _within(item: str, namespace: str, plural: str) -> bool:
    there = item.rpartition("/")[0]
    return there == f"{namespace}/{plural}" if namespace else f"/{there}".endswith(f"/{plural}")


def _merged(obj: Object, changes: Object) -> Object:
    merged = dict(obj)
    for name, value in changes.items():
        merged[name] = _merged(obj.get(name) or {}, value) if isinstance(value, dict) else value
    return merged


def _selected(event: Object, selector: str) -> bool:
    fields = {f"involvedObject.{name}": value for name, value in event["involvedObject"].items()}
    fields["type"] = event.get("type", "Normal")
    return all(fields.get(name) == value for name, _, value in (one.partition("=") for one in selector.split(",")))
