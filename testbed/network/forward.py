"""A program that forwards connections from loopback into the network namespace in which it runs.

It inherits listening sockets created outside the namespace. Each argument is DESCRIPTOR=HOST:PORT.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress


async def _serve(pairs: Sequence[str]) -> None:
    for pair in pairs:
        descriptor, target = pair.split("=")
        host, port = target.rsplit(":", 1)

        async def handle(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str = host, port: str = port
        ) -> None:
            await _forward(reader, writer, host, int(port))

        await asyncio.start_server(handle, sock=socket.socket(fileno=int(descriptor)))
    await asyncio.Event().wait()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    with suppress(OSError):
        target_reader, target_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
    writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError):
        writer.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1:]))
