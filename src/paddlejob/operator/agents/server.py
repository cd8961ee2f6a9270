"""The HTTPS server of the channel, on the leader only. Whoever can reach it may connect, so everything has a limit."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from paddlejob.engine.backend import Key
from paddlejob.errors import NotPossible
from paddlejob.operator.agents.agents import NO_ORDER, SUPERSEDED, Agents
from paddlejob.operator.agents.identity import Denied, Identity
from paddlejob.operator.health import host_and_port
from paddlejob.plan.world import AgentReport, AgentState
from paddlejob.redaction import without_environment

PATH = "/v1/agent"
VERSION = 1
POLL_SECONDS = 25.0
HANDSHAKE_SECONDS = 5.0
UNKNOWN_SECONDS = 10.0
"""In which a connection must have carried an accepted token and a report, and each further report is to be read."""
MOST_UNKNOWN = 1000
"""Connections of the last ten seconds without an accepted token; further ones are closed before their handshake."""
MOST_CONNECTIONS = 20_000
MOST_BODY = 64 * 1024
MOST_OUTPUT = 2000
BUFFER = 16 * 1024
"""Bytes that asyncio reserves for each TLS connection, instead of 256 KiB; a TLS record has at most as many."""
APART = 0.2
"""Seconds between two answers to the same agent; one that asks all the time must not busy the operator."""
SHUTDOWN_SECONDS = 1.0
"""For which the end of the server waits for answers; agents ask the next leader."""
log = logging.getLogger(__name__)


class AgentServer:
    """`enqueue` is called with the key of a job about whose pods there is news; only a leader answers."""

    def __init__(
        self,
        agents: Agents,
        identity: Identity,
        enqueue: Callable[[Key], None],
        is_leader: Callable[[], bool],
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._agents = agents
        self._identity = identity
        self._enqueue = enqueue
        self._is_leader = is_leader
        self._poll_seconds = poll_seconds
        self._unknown: set[web.RequestHandler] = set()

    @asynccontextmanager
    async def serving(self, address: str, tls: ssl.SSLContext) -> AsyncIterator[int]:
        """Serve inside the context; yields the port. Raises NotPossible."""
        setattr(sslproto.SSLProtocol, "max_size", BUFFER)  # noqa: B010
        app = web.Application(client_max_size=MOST_BODY)
        app.add_routes([web.post(PATH, self._handle)])
        runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=POLL_SECONDS,
            max_line_size=16 * 1024,
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        await runner.setup()
        host, port = host_and_port(address)
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: self._accept(runner),
                host or None,
                port,
                ssl=tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=1.0,
                backlog=1024,
            )
        except OSError as error:
            await runner.cleanup()
            raise NotPossible(f"cannot listen on {address}: {error.strerror}; choose another address") from error
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            await runner.cleanup()

    def _accept(self, runner: web.AppRunner) -> asyncio.BaseProtocol:
        """An exception closes the connection before it costs a handshake."""
        assert runner.server is not None
        if len(self._unknown) >= MOST_UNKNOWN or len(runner.server.connections) >= MOST_CONNECTIONS:
            raise ConnectionAbortedError("too many connections")
        handler = runner.server()
        self._unknown.add(handler)
        asyncio.get_running_loop().call_later(UNKNOWN_SECONDS, self._close_unknown, handler)
        return handler

    def _close_unknown(self, handler: web.RequestHandler) -> None:
        if handler in self._unknown:
            self._unknown.discard(handler)
            handler.force_close()

    async def _handle(self, request: web.Request) -> web.Response:
        if not self._is_leader():
            return _denied(409, "this operator is not the leader")
        try:
            caller = await self._identity.of(request.headers.get("Authorization", ""))
        except Denied as denied:
            return _denied(denied.code, str(denied))
        try:
            async with asyncio.timeout(UNKNOWN_SECONDS):
                report = _report(await request.read())
        except ValueError as error:
            return _denied(400, str(error))
        except TimeoutError:
            return _denied(408, "the report did not arrive in time")
        self._unknown.discard(request.protocol)
        news = self._agents.take(caller.pod.uid, report)
        if news:
            self._enqueue(caller.job)
        # An agent whose program ended waits for 10 s unless it knows that somebody has heard of it.
        acknowledges = news and report.state is not AgentState.RUNNING
        try:
            answer = await self._agents.answer(caller.pod.uid, 0 if acknowledges else self._poll_seconds)
        finally:
            self._enqueue_if_gone(caller.job, request)
        await asyncio.sleep(APART if answer in (NO_ORDER, SUPERSEDED) else 0)
        response = web.json_response(answer if self._is_leader() else NO_ORDER)
        if answer is SUPERSEDED:  # A pod needs no more than one connection.
            response.force_close()
        return response

    def _enqueue_if_gone(self, job: Key, request: web.Request) -> None:
        """The job says when its agents are not connected any more; they may come back."""
        if request.transport is None or request.transport.is_closing():
            self._enqueue(job)


def _report(body: bytes) -> AgentReport:
    """Raises ValueError, which names what cannot be read."""
    try:
        given: Any = json.loads(body)
        version, attempt, status = given["version"], given["attempt"], given.get("exitStatus")
        state = AgentState(given["state"])
        output = str(given.get("output") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the report cannot be read: {error}") from error
    if version != VERSION:
        raise ValueError(f"version {version!r} of the protocol is not supported; this operator speaks {VERSION}")
    if not _is_count(attempt) or not (status is None or _is_count(status)):
        raise ValueError("attempt and exitStatus must be small numbers")
    failed = state is AgentState.EXITED
    return AgentReport(
        attempt,
        state,
        (status or 1) if failed else status,
        without_environment(output[-MOST_OUTPUT:]) if failed else "",
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _denied(code: int, message: str) -> web.Response:
    response = web.Response(status=code, text=message)
    response.force_close()
    return response
