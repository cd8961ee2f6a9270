"""The log of one pod: its last matching lines, and what was written since a moment."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from paddlejob.api.types import Role
from paddlejob.cli.options import parse_duration
from paddlejob.client.targets import pod_log
from paddlejob.client.targets.target import LogChoice
from paddlejob.errors import BadInput
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import job

LOSS = re.compile(b"loss")


class Kubelet:
    """Serves the log of a pod that has ended, as an API server does."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.later: list[str] = []
        """What the pod prints after the first request."""
        self.queries: list[dict[str, str]] = []
        self.pod = pod_manifest(job(), Role.WORKER, 0, 1, "build")
        self.pod["metadata"]["uid"] = "one"
        self.pod["status"] = {"containerStatuses": [{"name": "paddle", "state": {"terminated": {}}}]}

    async def respond(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/log"):
            return web.json_response(self.pod)
        query = dict(request.query)
        self.queries.append(query)
        shown = [line for line in self.lines if line.partition(" ")[0] >= query.get("sinceTime", "")]
        if "tailLines" in query:
            shown = shown[len(shown) - int(query["tailLines"]) :]
        self.lines, self.later = self.lines + self.later, []
        texts = [line if "timestamps" in query else line.partition(" ")[2] for line in shown]
        return web.Response(text="".join(f"{text}\n" for text in texts))


@pytest.fixture
async def kubelet() -> Kubelet:
    made = Kubelet()
    made.lines = [f"2027-01-15T08:00:0{second}Z {text}" for second, text in enumerate(["loss=3", "a", "loss=2", "b"])]
    return made


@pytest.fixture
async def client(kubelet: Kubelet) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", kubelet.respond)
    async with TestServer(app) as server, Client(Access(str(server.make_url("")).rstrip("/"))) as made:
        yield made


async def read(client: Client, kubelet: Kubelet, **choice: Any) -> list[bytes]:
    how = pod_log.follow if choice.get("follow") else pod_log.read
    return [line async for line in how(client, kubelet.pod, LogChoice(**choice))]


@pytest.mark.parametrize("follow", [False, True])
async def test_the_last_matching_lines_are_not_the_matching_ones_of_the_last(
    client: Client, kubelet: Kubelet, follow: bool
):
    assert await read(client, kubelet, pattern=LOSS, tail=1, follow=follow) == [b"loss=2"]
    assert await read(client, kubelet, pattern=LOSS, follow=follow) == [b"loss=3", b"loss=2"]
    assert await read(client, kubelet, tail=1, follow=follow) == [b"b"]


async def test_lines_that_come_while_the_last_matches_are_searched_are_neither_lost_nor_doubled(
    client: Client, kubelet: Kubelet
):
    kubelet.later = ["2027-01-15T08:00:04Z loss=1", "2027-01-15T08:00:05Z c"]
    assert await read(client, kubelet, pattern=LOSS, tail=1, follow=True) == [b"loss=2", b"loss=1"]


async def test_the_server_is_asked_for_what_was_written_since(client: Client, kubelet: Kubelet):
    assert await read(client, kubelet, since=1800000002.0) == [b"loss=2", b"b"]
    assert kubelet.queries[0]["sinceTime"] == "2027-01-15T08:00:02Z"


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172800)])
def test_durations_are_written_as_people_do(text: str, seconds: int):
    assert parse_duration("--since", text) == seconds


@pytest.mark.parametrize("text", ["10", "m", "-5m", "1.5h", "5 m"])
def test_a_duration_that_is_none_is_one_message(text: str):
    with pytest.raises(BadInput, match="write it as 30s, 10m, 2h or 1d"):
        parse_duration("--since", text)
