"""What the live view sees of a job on a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from paddlejob.api.types import Role
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.target import JobView, PodView
from paddlejob.client.watch.cluster import ClusterObserver
from paddlejob.kube.access import Access
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import job

LOG = "".join(f"step={step}/9 loss={9 - step}\n" for step in range(1, 6))
METRICS = {"metadata": {"name": "mnist-worker-0"}, "containers": [{"usage": {"cpu": "1500m", "memory": "2Gi"}}]}


class Api:
    """A cluster with one running worker."""

    def __init__(self) -> None:
        self.log = LOG
        self.metrics: list[dict[str, Any]] = [METRICS]
        self.asked: list[str] = []

    async def respond(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if "metrics.k8s.io" in request.path:
            return (
                web.json_response({"metadata": {}, "items": self.metrics})
                if self.metrics
                else web.json_response({}, status=404)
            )
        if request.path.endswith("/log"):
            lines = self.log.splitlines(keepends=True)[-int(request.query["tailLines"]) :]
            return web.Response(text="".join(lines))
        pod = pod_manifest(job(), Role.WORKER, 0, 1, "build")
        pod["status"] = {"containerStatuses": [{"name": "paddle", "state": {"running": {}}}]}
        return web.json_response(pod)


@pytest.fixture
async def api() -> Api:
    return Api()


@pytest.fixture
async def observer(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClusterObserver]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.respond)
    async with TestServer(app) as server:
        access = Access(str(server.make_url("")).rstrip("/"))
        monkeypatch.setattr("paddlejob.client.targets.cluster.find_access", lambda context: access)
        yield ClusterObserver(ClusterTarget())


def view(step: int = 5, **fields: Any) -> JobView:
    progress = {"step": step, "metrics": {"loss": 9.0 - step}}
    status = {"phase": "Running", "attempt": 1, "progress": progress}
    pods = [PodView("mnist-worker-0", "worker", 0, "Running", attempt=1)]
    return JobView(job(status=status), {}, "Running", pods=pods, **fields)


async def test_the_last_lines_the_loss_and_the_use_of_a_pod_are_seen(observer: ClusterObserver):
    seen = await asyncio.to_thread(observer.observe, view(), 2)
    assert (seen.replica, seen.lines) == ("worker-0", ("step=4/9 loss=5", "step=5/9 loss=4"))
    assert seen.losses == (8.0, 7.0, 6.0, 5.0, 4.0)
    used = seen.usage["mnist-worker-0"]
    assert (used.cpu, used.memory) == (1.5, 2 << 30)


async def test_later_losses_are_taken_from_the_status_each_once(observer: ClusterObserver):
    for step in (5, 5, 6, 6, 7):
        seen = await asyncio.to_thread(observer.observe, view(step), 2)
    assert seen.losses == (8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0)


async def test_a_cluster_without_the_metrics_api_is_not_asked_again_at_once(api: Api, observer: ClusterObserver):
    api.metrics = []
    for _ in range(3):
        assert (await asyncio.to_thread(observer.observe, view(), 0)).usage == {}
    assert sum("metrics.k8s.io" in path for path in api.asked) == 1
