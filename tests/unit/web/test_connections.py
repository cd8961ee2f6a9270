"""Connections on which no request arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web

from paddlejob.local.state.store import JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.web.access import AccessControl
from paddlejob.web.app import WebApp
from paddlejob.web.connections import Connections
from paddlejob.web.job_list import JobList

HALF = b"GET / HTTP/1.1\r\nHost: local"
WHOLE = b"GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(store: JobStore, connections: Connections) -> AsyncIterator[Callable[[bytes], asyncio.Future[Opened]]]:
    app = WebApp([JobList(LocalTarget(store))], AccessControl("127.0.0.1"), connections=connections)
    runner = web.AppRunner(app.build())
    await runner.setup()
    assert runner.server
    accept = partial(connections.accept, runner.server)
    listening = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
    closing = asyncio.create_task(connections.close_idle())

    async def send(request: bytes) -> Opened:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(request)
        return reader, writer

    yield lambda request: asyncio.ensure_future(send(request))
    closing.cancel()
    listening.close()
    await runner.cleanup()


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(30):
            return await reader.read() == b""
    except ConnectionError:
        return True


async def test_half_a_request_is_given_up_and_a_connection_without_one_as_well(store: JobStore):
    async with served(store, Connections(seconds=0.2)) as send:
        for request in (HALF, b""):
            reader, _ = await send(request)
            assert await ended(reader)
        reader, _ = await send(WHOLE)
        assert b"200" in await reader.readline()


async def test_a_connection_too_many_replaces_the_one_that_waits_longest(store: JobStore):
    async with served(store, Connections(seconds=600, most=2)) as send:
        opened = [await send(HALF) for _ in range(2)]
        await asyncio.sleep(0.1)
        reader, _ = await send(WHOLE)
        assert b"200" in await reader.readline()
        assert await ended(opened[0][0]) and not opened[1][0].at_eof()
