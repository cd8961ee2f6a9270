"""Servers on loopback, for one handler of all requests or for the scripted cluster `api`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web

from paddlejob.kube.access import Access
from paddlejob.kube.client import Client
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from tests.support.scripted_cluster import Handler, ScriptedCluster, Serve


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[Access]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield Access(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await runner.cleanup()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:
        yield lambda handler: stack.enter_async_context(served(handler))


@pytest.fixture
async def api() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
async def server(serve: Serve, api: ScriptedCluster) -> AsyncIterator[str]:
    yield (await serve(api.respond)).server
    api.watches_end.set()


@pytest.fixture
async def client(server: str) -> AsyncIterator[Client]:
    async with Client(Access(server)) as made:
        yield made


@pytest.fixture
async def target(server: str, monkeypatch: pytest.MonkeyPatch) -> ClusterTarget:
    monkeypatch.setattr("paddlejob.targets.cluster.cluster_target.find_access", lambda context: Access(server))
    return ClusterTarget()
