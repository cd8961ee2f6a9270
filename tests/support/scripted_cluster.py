"""A scripted API server with what a client of a cluster reads besides jobs: discovery, events, operators, logs."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from paddlejob import contract
from paddlejob.api.types import Role
from paddlejob.operator.manifests import NAME, NAMESPACE
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import document, job
from tests.support.scripted_api import Object, ScriptedApi, _short

JOB = "default/paddlejobs/mnist"


class ScriptedCluster(ScriptedApi):
    """A dry run stores nothing, an object that is applied may be new, and lists heed their namespace."""

    def __init__(self, *objects: tuple[str, Object]) -> None:
        super().__init__(*objects)
        self.events: list[Object] = []
        self.deployments: list[Object] | None = [operator()]
        """None: the caller may not list those of all namespaces."""
        self.logs: dict[str, list[str]] = {}
        self.kinds: list[Object] = []
        self.queries: list[tuple[str, dict[str, str]]] = []
        self.tried: list[str] = []
        """The names of the objects of dry runs."""

    def add_job(self, status: Object | None = None, name: str = "mnist", **spec: Any) -> Object:
        made = document(name, **spec) | {"status": status or {}}
        return self.put(f"default/paddlejobs/{name}", made)

    def add_pod(
        self, index: int = 0, *, role: str = "worker", attempt: int = 1, state: str = "running", **more: Any
    ) -> Object:
        """`state` is that of its training container; empty before its kubelet reports one."""
        made = pod_manifest(job(ps=1, workers=2), Role(role), index, attempt, "build")
        reference = {"controller": True, "uid": "uid-of-mnist", "kind": contract.KIND, "name": "mnist"}
        made["metadata"]["ownerReferences"] = [{**reference, "apiVersion": contract.API_VERSION}]
        made["metadata"] |= more
        phase = {"running": "Running", "terminated": "Succeeded"}.get(state, "Pending")
        made["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": "paddle", "state": {state: {}}}] if state else [],
        }
        # A pod that is kept of another attempt cannot have the same name.
        return self.put(f"default/pods/{made['metadata']['name']}{f'-{attempt}' if attempt > 1 else ''}", made)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        path, query = _short(request.path), dict(request.query)
        self.queries.append((path, query))
        if (request.method, path) in self.answers:
            return await super().respond(request)
        match path.rpartition("/")[2]:
            case "log":
                return web.Response(text=self._log(path.split("/")[-2], query))
            case "":
                return web.json_response({"resources": self.kinds})
            case "events":
                return _listed([one for one in self.events if _selected(one, query["fieldSelector"])])
            case "deployments" if self.deployments is not None:
                return _listed(self.deployments)
        if "dryRun" not in query:
            return await super().respond(request)
        before, asked = dict(self.objects), len(self.asked)
        response = await super().respond(request)
        self.tried += [str(one.body["metadata"]["name"]) for one in self.asked[asked:]]
        self.objects, self.asked = before, self.asked[:asked]
        return response

    def _answer(self, method: str, path: str, body: Object) -> tuple[int, Object]:
        if method == "PATCH" and path not in self.objects and "kind" in body:
            return 201, self.put(path, body)
        code, found = super()._answer(method, path, body)
        if method == "GET" and "items" in found and path.count("/"):
            here = path.partition("/")[0]
            found["items"] = [one for one in found["items"] if one["metadata"]["namespace"] == here]
        return code, found

    def _log(self, pod: str, query: dict[str, str]) -> str:
        lines = [f"2027-01-15T08:00:{second:02}.123456789Z {text}" for second, text in enumerate(self.logs[pod])]
        shown = [line for line in lines if line >= query.get("sinceTime", "").rstrip("Z")]
        shown = shown[len(shown) - int(query["tailLines"]) :] if "tailLines" in query else shown
        return "".join(f"{line if 'timestamps' in query else line.partition(' ')[2]}\n" for line in shown)


def operator(watch: str = "", available: int = 1, namespace: str = NAMESPACE, arguments: Any = None) -> Object:
    container = {"image": "operator:1", "args": arguments or (["operator", f"--namespace={watch}"] if watch else [])}
    return {
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": available},
    }


def _listed(items: list[Object]) -> web.Response:
    return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


def _selected(event: Object, selector: str) -> bool:
    fields = {f"involvedObject.{name}": value for name, value in event["involvedObject"].items()}
    fields["type"] = event.get("type", "Normal")
    return all(fields.get(name) == value for name, _, value in (one.partition("=") for one in selector.split(",")))
