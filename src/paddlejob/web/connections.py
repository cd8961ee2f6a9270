"""Connections that no request arrives on are closed, so that they cannot use up the files that a process may open."""

from __future__ import annotations

import asyncio
import resource
import time

from aiohttp import web
from aiohttp.typedefs import Handler

REQUEST_SECONDS = 15.0
"""Time for a whole request, from the connection or from the response before it; pages connect again by themselves."""
MOST_CONNECTIONS = 2048
RESERVED_FILES = 256
"""Open files for everything else: logs, the state of jobs, clusters."""


class Connections:
    """The connections of a server, which all serve requests of one application."""

    def __init__(self, seconds: float = REQUEST_SECONDS, most: int = MOST_CONNECTIONS) -> None:
        self._seconds = seconds
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = most if limit == resource.RLIM_INFINITY else max(1, min(most, limit - RESERVED_FILES))
        self._waiting: dict[web.RequestHandler, float] = {}
        """Since when a connection waits for a request, longest first."""

    def accept(self, server: web.Server) -> web.RequestHandler:
        """The protocol of a new connection; one too many replaces the one that waits longest."""
        if len(self._waiting) >= self._most:
            self._close(next(iter(self._waiting)))
        made = server()
        self._waiting[made] = time.monotonic()
        return made

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._waiting.pop(request.protocol, None)
        try:
            return await handler(request)
        finally:
            self._waiting[request.protocol] = time.monotonic()

    async def close_idle(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / 5)
            before = time.monotonic() - self._seconds
            for connection in [one for one, since in self._waiting.items() if since < before and not _writes(one)]:
                self._close(connection)

    def _close(self, connection: web.RequestHandler) -> None:
        del self._waiting[connection]
        if connection.transport is not None:
            connection.transport.abort()


def _writes(connection: web.RequestHandler) -> bool:
    """Whether a response has not arrived yet."""
    return isinstance(connection.transport, asyncio.WriteTransport) and connection.transport.get_write_buffer_size() > 0
