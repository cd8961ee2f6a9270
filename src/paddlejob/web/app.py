"""The routes of the server. Every answer but the page itself and its files is JSON; the page shows it as text."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from aiohttp import web

from paddlejob import contract
from paddlejob.errors import BadInput, NoSuchJob, PaddleJobError
from paddlejob.targets.capacity import MachineInfo
from paddlejob.web.access import LOGIN, AccessControl, add_headers, refuse
from paddlejob.web.actions import act
from paddlejob.web.connections import Connections
from paddlejob.web.feed import HEARTBEAT, PAUSE, Feed
from paddlejob.web.http import errors, log_selection, number, read_body, reply
from paddlejob.web.job_list import JobList
from paddlejob.web.static_files import StaticFiles
from paddlejob.web.stream import Streams
from paddlejob.web.views.detail import Detail, detail_of

BODY_LIMIT = 64 * 1024
USAGE_PAUSE = 2.0
JOB_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Another would change the path of a file, or the URL of a request."""


class WebApp:
    def __init__(
        self,
        lists: Sequence[JobList],
        access: AccessControl,
        read_only: bool = False,
        connections: Connections | None = None,
    ) -> None:
        self.access = access
        self.feed = Feed(lists)
        self.streams = Streams()
        self.connections = connections or Connections()
        self.read_only = read_only
        self._files = StaticFiles()

    def build(self) -> web.Application:
        app = web.Application(
            middlewares=[self.connections.middleware, errors, self.access.middleware], client_max_size=BODY_LIMIT
        )
        app.on_response_prepare.append(add_headers)
        job = "/api/jobs/{target}/{namespace}/{name}"
        app.add_routes(
            [
                web.get("/", self._files.page),
                web.get("/static/{file}", self._files.serve),
                web.post(LOGIN, self.log_in),
                web.get("/api/jobs", self.jobs),
                web.get("/api/stream", self.job_changes),
                web.get("/api/machine", self.machine),
                web.get(job, self.job),
                web.get(f"{job}/stream", self.job_stream),
                web.get(f"{job}/plan", self.plan),
                web.get(f"{job}/series", self.series),
                web.get(f"{job}/logs", self.logs),
                web.get(f"{job}/logs/stream", self.log_stream),
                web.get(f"{job}/logs/search", self.log_search),
                web.get(f"{job}/logs/download", self.log_download),
                web.post(f"{job}/{{action}}", self.act),
            ]
        )
        app.on_shutdown.append(self._end_streams)
        return app

    async def _end_streams(self, app: web.Application) -> None:
        self.streams.end()

    async def log_in(self, request: web.Request) -> web.Response:
        """Exchange the token of a link for the secret of a session."""
        token = (await read_body(request)).get("token")
        secret = self.access.sessions.start(token) if isinstance(token, str) else None
        if secret is None:
            return refuse(401, "This link was used before or is of another server. Run `pdj web --url` for a new one.")
        return reply(request, {"secret": secret})

    async def jobs(self, request: web.Request) -> web.Response:
        changes = await self.feed.changes(since=0)
        return reply(request, {"changes": changes, "readOnly": self.read_only})

    async def job_changes(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.send(request, self.feed.follow(number(request, "since")))

    async def machine(self, request: web.Request) -> web.Response:
        return reply(request, [await _machine(source) for source in self.feed.lists.values()])

    async def job(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        return reply(request, await self._detail(source, namespace, name))

    async def job_stream(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.send(request, self._details(*self._job(request)))

    async def plan(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        from paddlejob.web.views.plan import plan_of

        view = await source.target.job(namespace, name)
        return reply(request, await asyncio.to_thread(plan_of, source.name, view))

    async def series(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        await source.target.job(namespace, name)
        return reply(request, await source.target.series(namespace, name))

    async def logs(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        return reply(request, await source.target.log_refs(namespace, name))

    async def log_stream(self, request: web.Request) -> web.StreamResponse:
        source, namespace, name = self._job(request)
        pieces = source.target.log_pieces(namespace, name, log_selection(request))
        return await self.streams.send(request, with_heartbeat(pieces))

    async def log_search(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        pattern = request.query.get("q", "")
        return reply(request, await source.target.search(namespace, name, log_selection(request), pattern))

    async def log_download(self, request: web.Request) -> web.StreamResponse:
        source, namespace, name = self._job(request)
        selection = log_selection(request)
        await source.target.job(namespace, name)
        file = "-".join(part for part in (name, request.query.get("replica", ""), str(selection.attempt or "")) if part)
        safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-._") else "_" for letter in file)
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/plain; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{safe}.log"',
            }
        )
        async with aclosing(source.target.download(namespace, name, selection)) as blocks:
            first = await anext(blocks, None)
            if first is None:
                return refuse(404, f"Job {name} has no such log, or the log is empty.")
            await response.prepare(request)
            await response.write(first)
            async for block in blocks:
                await response.write(block)
        return response

    async def act(self, request: web.Request) -> web.Response:
        if self.read_only:
            return refuse(403, "The server runs with --read-only.")
        source, namespace, name = self._job(request)
        body = await read_body(request)
        message = await act(source.target, request.match_info["action"], namespace, name, body.get("workers"))
        return reply(request, {"message": message})

    def _job(self, request: web.Request) -> tuple[JobList, str, str]:
        source = self.feed.lists.get(request.match_info["target"])
        if source is None:
            raise BadInput(f"{request.match_info['target']} is not a target of this server")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        if source.name != "local" and not (re.fullmatch(contract.DNS_LABEL, namespace) and JOB_NAME.fullmatch(name)):
            # Such a name would change the URL of a request; on this machine it may be that of a damaged directory.
            raise NoSuchJob(f"job {name!r} not found in namespace {namespace!r}")
        return source, namespace, name

    async def _detail(self, source: JobList, namespace: str, name: str) -> Detail:
        view = await source.target.job(namespace, name)
        return detail_of(source.name, view, await source.target.usage(view), self.read_only)

    async def _details(self, source: JobList, namespace: str, name: str) -> AsyncIterator[Detail | None]:
        """A job whenever it has changed; what its processes use is read less often."""
        last: Detail | None = None
        measured, usage, said = 0.0, {}, time.monotonic()
        while True:
            view = await source.target.job(namespace, name)
            if time.monotonic() - measured > USAGE_PAUSE:
                measured, usage = time.monotonic(), await source.target.usage(view)
            found = detail_of(source.name, view, usage, self.read_only)
            if found != last:
                last, said = found, time.monotonic()
                yield found
            elif time.monotonic() - said > HEARTBEAT:
                said = time.monotonic()
                yield None
            await asyncio.sleep(PAUSE)


async def _machine(source: JobList) -> MachineInfo:
    """One target that does not answer hides no other."""
    try:
        return await source.target.capacity(source.namespace)
    except PaddleJobError as error:
        described = source.describe()
        return MachineInfo(described.name, described.title, str(error))


async def with_heartbeat(batches: AsyncIterator[list[Any]]) -> AsyncIterator[list[Any] | None]:
    """An empty batch is sent only if there was nothing for a while, and the first, so that a page knows it is empty."""
    said = 0.0
    async for batch in batches:
        if batch or not said:
            said = time.monotonic()
            yield batch
        elif time.monotonic() - said > HEARTBEAT:
            said = time.monotonic()
            yield None
