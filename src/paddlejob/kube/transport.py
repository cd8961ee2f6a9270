"""HTTP requests to the API server, retried where that is safe."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp

from paddlejob.delays import exponential_delay
from paddlejob.errors import ApiError, NoCredentials, NotLeader, Unreachable
from paddlejob.kube.access import Access
from paddlejob.kube.api_errors import api_error, is_retriable
from paddlejob.kube.resource import Resource
from paddlejob.kube.server_clock import ServerClock, steady_clock
from paddlejob.lines import LONGEST, LineSplitter

# A TLS connection costs a third of a MiB; more than this many made the API server no faster.
CONNECTIONS = 40
ATTEMPTS = 5
FIRST_BACKOFF = 0.2
LONGEST_BACKOFF = 30.0
CONNECT_SECONDS = 10.0
# The API server closes idle connections after 90 s; closing them earlier avoids sending on one that just closed.
KEEPALIVE_SECONDS = 60.0

# After these the request may or may not have reached the server.
CONNECTION_ERRORS = (TimeoutError, aiohttp.ClientError, OSError)

JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The server sends no more of an object than its metadata."""

log = logging.getLogger(__name__)
Observe = Callable[[str, Resource, int, float], None]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the server; `verb` is the Kubernetes API verb, for metrics and messages."""

    verb: str
    resource: Resource
    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def idempotent(self) -> bool:
        """Whether sending it twice has the effect of sending it once; a second DELETE finds nothing to delete."""
        return self.method in ("GET", "DELETE")

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


class Transport:
    """Connections to one API server, open inside `async with`.

    `may_write` is called right before every write is sent, retries included; if it returns False, NotLeader is raised
    instead.
    """

    def __init__(self, access: Access, may_write: Callable[[], bool], observe: Observe | None, timeout: float) -> None:
        self.access = access
        self._may_write = may_write
        self._observe = observe
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self.clock = ServerClock()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS, keepalive_timeout=KEEPALIVE_SECONDS, ssl=self.access.tls or True
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "paddlejob"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exchange(self, request: Request) -> bytes:
        """Send a request and return the body of the response."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await self._once(request)
            except ApiError as error:
                if not is_retriable(error):
                    raise
                await asyncio.sleep(_backoff(attempt, error.retry_after))
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(_backoff(attempt))
            except CONNECTION_ERRORS as error:
                if not request.idempotent:
                    raise self._unreachable(request, error) from error
                await asyncio.sleep(_backoff(attempt))
        try:
            return await self._once(request)
        except CONNECTION_ERRORS as error:
            raise self._unreachable(request, error) from error

    async def lines(
        self,
        request: Request,
        *,
        idle: float | None = None,
        opened: Callable[[], None] = lambda: None,
        longest: int = LONGEST,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch or a log as they arrive; a pause longer than `idle` seconds is an error."""
        try:
            async with self._response(request, idle) as response:
                opened()
                splitter = LineSplitter(longest)
                async for chunk in response.content.iter_any():
                    for line in splitter.feed(chunk):
                        yield line
                if rest := splitter.take():
                    yield rest
        except CONNECTION_ERRORS as error:
            raise self._unreachable(request, error) from error

    async def _once(self, request: Request) -> bytes:
        async with asyncio.timeout(self._timeout), self._response(request) as response:
            return await response.read()

    @asynccontextmanager
    async def _response(self, request: Request, idle: float | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """A successful response; others are raised as errors. Rejected credentials are renewed once."""
        header = await self.access.authorization()
        response = await self._send(request, header, idle)
        if response.status == 401 and await self.access.renew(header):
            response.release()
            response = await self._send(request, await self.access.authorization(), idle)
        async with response:
            if response.status >= 400:
                raise self._error(request, response, await response.read())
            yield response

    async def _send(self, request: Request, header: str, idle: float | None) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open; use it inside `async with`")
        if request.writes and not self._may_write():
            raise NotLeader(f"{request} was not sent: this process does not hold the lease")
        headers = [("Accept", request.accept), *self.access.impersonation]
        if header:
            headers.append(("Authorization", header))
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        code, begun, started = 0, steady_clock(), time.monotonic()
        try:
            response = await self._session.request(
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
            code = response.status
            if code < 400:
                self.clock.compare(begun, response.headers.get("Date", ""))
        finally:
            if self._observe is not None:
                self._observe(request.verb, request.resource, code, time.monotonic() - started)
        return response

    def _error(self, request: Request, response: aiohttp.ClientResponse, body: bytes) -> Exception:
        error = api_error(response.status, body, response.headers, str(request))
        if error.code != 401:
            return error
        return NoCredentials(
            f"{self.access.server} rejected the credentials: {error.message}; log in again or change the context"
        )

    def _unreachable(self, request: Request, error: BaseException) -> Unreachable:
        cause = str(error) or f"no response in time ({type(error).__name__})"
        return Unreachable(f"{request}: {cause}; is the API server {self.access.server} up and reachable?")


def _backoff(attempt: int, retry_after: float | None = None) -> float:
    """At least what the server asked for, growing exponentially, with jitter."""
    grown = exponential_delay(attempt, FIRST_BACKOFF, LONGEST_BACKOFF) * random.uniform(0.5, 1.5)
    return min((retry_after or 0.0) + grown, LONGEST_BACKOFF)
