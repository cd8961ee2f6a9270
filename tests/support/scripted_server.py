"""Fixtures around a scripted cluster, which a test defines as the fixture `api`: its server, a client and a target."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from tests.support.scripted_cluster import ScriptedCluster


@pytest.fixture
async def server(api: ScriptedCluster) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.respond)
    async with TestServer(app) as started:
        yield str(started.make_url("")).rstrip("/")
        api.watches_end.set()


@pytest.fixture
async def client(server: str) -> AsyncIterator[Client]:
    async with Client(Access(server)) as made:
        yield made


@pytest.fixture
async def target(server: str, monkeypatch: pytest.MonkeyPatch) -> ClusterTarget:
    monkeypatch.setattr("paddlejob.client.targets.cluster.find_access", lambda context: Access(server))
    return ClusterTarget()
