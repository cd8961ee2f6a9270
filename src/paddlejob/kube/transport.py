"""One HTTP exchange with the API server, tried again where that is safe."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp

from paddlejob.errors import ApiError, NoCredentials, NotLeader, Unreachable
from paddlejob.kube.access import Access
from paddlejob.kube.answers import error_of, may_be_sent_again
from paddlejob.kube.resource import Resource

# A TLS connection costs a third of a MiB; more than this many made the API server no faster.
CONNECTIONS = 40
ATTEMPTS = 5
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
CONNECT_SECONDS = 10.0
# The API server drops idle connections after 90 s; to be earlier avoids sending on one that just closed.
KEEP_SECONDS = 60.0

# What the network does to a request: it may or may not have arrived.
BROKEN = (TimeoutError, aiohttp.ClientError, OSError)

Observe = Callable[[str, Resource, int, float], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the server. `verb` is Kubernetes' word for it, for metrics and messages."""

    verb: str
    resource: Resource
    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def repeatable(self) -> bool:
        """Whether asking twice does what asking once does. A second DELETE finds nothing to delete."""
        return self.method in ("GET", "DELETE")

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


class Transport:
    """Connections to one API server, open inside `async with`.

    `may_write` is asked right before every write is sent, repetitions included; while it says no, NotLeader
    is raised instead.
    """

    def __init__(self, access: Access, may_write: Callable[[], bool], observe: Observe | None, timeout: float) -> None:
        self.access = access
        self._may_write = may_write
        self._observe = observe
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEP_SECONDS, ssl=self.access.tls or True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "application/json", "User-Agent": "paddlejob"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exchange(self, request: Request) -> bytes:
        """Send a request and return the body of the answer."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await self._once(request)
            except ApiError as error:
                if not may_be_sent_again(error):
                    raise
                await asyncio.sleep(_pause(attempt, error.retry_after))
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(_pause(attempt))
            except BROKEN as fault:
                if not request.repeatable:
                    raise self._unreachable(request, fault) from fault
                await asyncio.sleep(_pause(attempt))
        try:
            return await self._once(request)
        except BROKEN as fault:
            raise self._unreachable(request, fault) from fault

    async def lines(
        self, request: Request, *, idle: float | None = None, opened: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch or a log as they come. `idle` is the longest silence allowed."""
        try:
            async with self._answer(request, idle) as answer:
                opened()
                rest = b""
                async for chunk in answer.content.iter_any():
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        yield line
                if rest:
                    yield rest
        except BROKEN as fault:
            raise self._unreachable(request, fault) from fault

    async def _once(self, request: Request) -> bytes:
        async with asyncio.timeout(self._timeout), self._answer(request) as answer:
            return await answer.read()

    @asynccontextmanager
    async def _answer(self, request: Request, idle: float | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """A successful answer, or the error it stands for. Credentials that are refused are renewed once."""
        header = await self.access.authorization()
        answer = await self._send(request, header, idle)
        if answer.status == 401 and await self.access.renew(header):
            answer.release()
            answer = await self._send(request, await self.access.authorization(), idle)
        async with answer:
            if answer.status >= 400:
                raise self._refusal(request, answer, await answer.read())
            yield answer

    async def _send(self, request: Request, header: str, idle: float | None) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is used outside `async with`")
        if request.writes and not self._may_write():
            raise NotLeader(f"{request} was held back: this process does not hold the lease")
        headers = {"Authorization": header} if header else {}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        begun, code = time.monotonic(), 0
        try:
            answer = await self._session.request(
                request.method,
                self.access.server + request.path,
                params=request.params,
                data=request.body,
                headers=headers,
                proxy=self.access.proxy,
                server_hostname=self.access.server_name,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle),
            )
            code = answer.status
        finally:
            if self._observe is not None:
                self._observe(request.verb, request.resource, code, time.monotonic() - begun)
        return answer

    def _refusal(self, request: Request, answer: aiohttp.ClientResponse, body: bytes) -> Exception:
        error = error_of(answer.status, body, answer.headers, str(request))
        if error.code != 401:
            return error
        return NoCredentials(
            f"{self.access.server} refused our credentials: {error.message}; log in again or change context"
        )

    def _unreachable(self, request: Request, fault: BaseException) -> Unreachable:
        said = str(fault) or f"no answer in time ({type(fault).__name__})"
        return Unreachable(f"{request}: {said}; is the API server {self.access.server} up and reachable?")


def _pause(attempt: int, asked: float | None = None) -> float:
    """At least what the server asked for, growing, and never the same for two clients."""
    grown: float = FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    return min((asked or 0.0) + grown, LONGEST_PAUSE)
