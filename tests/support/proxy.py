"""A TCP proxy in front of an API server, so that a test can take the cluster away and give it back."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from pathlib import Path


class Proxy:
    def __init__(self, port: int) -> None:
        self.port = 0
        self._upstream = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        self._connections |= {writer, upstream_writer}
        await asyncio.gather(_copy(reader, upstream_writer), _copy(upstream_reader, writer))
        self._connections -= {writer, upstream_writer}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def kubeconfig_through(kubeconfig: Path, proxy: Proxy, target: Path) -> Path:
    target.write_text(re.sub(r"(https://[^:\s]+):\d+", rf"https://127.0.0.1:{proxy.port}", kubeconfig.read_text()))
    return target


def server_port(kubeconfig: Path) -> int:
    found = re.search(r"https://[^:\s]+:(\d+)", kubeconfig.read_text())
    assert found
    return int(found[1])
