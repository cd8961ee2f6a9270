"""A small server that misbehaves on demand, where a real API server cannot be made to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from paddlejob.kube.access import Access

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[Access]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a server on loopback with one handler for all requests; returns the access to it."""
    runners: list[web.AppRunner] = []

    async def start(handler: Handler) -> Access:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        return Access(f"http://127.0.0.1:{port}")

    yield start
    for runner in runners:
        await runner.cleanup()
