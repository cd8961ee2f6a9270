"""The log of the first worker on a cluster, for `pdj metrics`: over the attempts whose pods are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from paddlejob import contract
from paddlejob.api.types import Role
from paddlejob.client.targets.first_worker_pod import read_first_worker
from paddlejob.client.targets.target import LogLine
from paddlejob.errors import BadInput
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import document, job
from tests.support.scripted_api import ScriptedApi

BEGAN = 1800000000.0


class Logs(ScriptedApi):
    """Also serves the logs of pods."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.on_read: dict[str, Any] = {}

    async def respond(self, request: web.Request) -> web.StreamResponse:
        pod, _, subresource = request.path.rpartition("/")
        if subresource != "log":
            return await super().respond(request)
        name = pod.rpartition("/")[2]
        self.on_read.get(name, lambda: None)()
        assert request.query["timestamps"] == "true"
        return web.Response(text=self.texts[name])

    def add_job(self, **status: Any) -> None:
        self.put("default/paddlejobs/mnist", document() | {"status": status})

    def add_pod(self, index: int, attempt: int, text: str, state: str = "terminated") -> None:
        made = pod_manifest(job(), Role.WORKER, index, attempt, "build")
        name = f"worker-{index}-of-{attempt}"
        made["metadata"]["ownerReferences"] = [
            {"controller": True, "uid": "uid-of-mnist", "kind": contract.KIND, "apiVersion": contract.API_VERSION}
        ]
        made["status"] = {"containerStatuses": [{"name": "paddle", "state": {state: {}}}]}
        self.put(f"default/pods/{name}", made)
        self.texts[name] = text


@pytest.fixture
async def api() -> Logs:
    return Logs()


@pytest.fixture
async def client(api: Logs) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.respond)
    async with TestServer(app) as server, Client(Access(str(server.make_url("")).rstrip("/"))) as made:
        yield made


def line(second: int, text: str) -> str:
    return f"2027-01-15T08:00:{second:02}.123456789Z {text}\n"


async def read(client: Client, follow: bool = False) -> list[LogLine]:
    return [found async for found in read_first_worker(client, "default", "mnist", follow, " --cluster")]


async def test_lines_of_every_attempt_that_is_kept_come_with_their_times(api: Logs, client: Client):
    api.add_job(phase="Running", attempt=2)
    api.add_pod(0, 2, line(30, "step 2/2") + line(31, ""), "running")
    api.add_pod(1, 2, line(30, "not the first worker"), "running")
    api.add_pod(0, 1, line(1, "step 1/2"))
    assert await read(client) == [
        LogLine(1, "step 1/2", BEGAN + 1),
        LogLine(2, "step 2/2", BEGAN + 30),
        LogLine(2, "", BEGAN + 31),
    ]


async def test_an_attempt_without_worker_0_is_read_from_its_first_worker(api: Logs, client: Client):
    api.add_job(phase="Running")
    api.add_pod(2, 1, line(1, "second"), "running")
    api.add_pod(1, 1, line(1, "first"), "running")
    assert [found.text for found in await read(client)] == ["first"]


async def test_a_log_without_times_is_read_too(api: Logs, client: Client):
    api.add_job(phase="Running")
    api.add_pod(0, 1, "garbage\n", "running")
    assert [(found.time, found.attempt) for found in await read(client)] == [(None, 1)]


async def test_following_continues_with_the_next_attempt_and_ends_with_the_job(api: Logs, client: Client):
    api.add_job(phase="Running", attempt=1)
    api.add_pod(0, 1, line(1, "step 1/2"))

    def restart() -> None:
        api.add_pod(0, 2, line(2, "step 2/2"))
        api.add_job(phase="Completed", attempt=2)

    api.on_read["worker-0-of-1"] = restart
    assert [(found.attempt, found.text) for found in await read(client, follow=True)] == [
        (1, "step 1/2"),
        (2, "step 2/2"),
    ]


async def test_a_job_whose_pods_are_gone_says_how_to_keep_them(api: Logs, client: Client):
    api.add_job(phase="Completed")
    with pytest.raises(BadInput, match="its pods were removed with their logs"):
        await read(client)


async def test_a_worker_that_has_not_started_has_no_log(api: Logs, client: Client):
    api.add_job(phase="Pending")
    api.add_pod(0, 1, "", "waiting")
    with pytest.raises(BadInput, match="pdj get mnist --cluster"):
        await read(client)
