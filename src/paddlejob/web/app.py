"""The routes of the server. Every answer but the page itself and its files is JSON; the page shows it as text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from aiohttp import web

from paddlejob.errors import BadInput, PaddleJobError
from paddlejob.web.access import AccessControl, add_headers, refuse
from paddlejob.web.actions import arguments, execute
from paddlejob.web.feed import HEARTBEAT, PAUSE, Feed
from paddlejob.web.http import errors, log_query, number, read_body, reply
from paddlejob.web.sources.source import Source
from paddlejob.web.static_files import StaticFiles
from paddlejob.web.stream import Streams
from paddlejob.web.views.detail import Detail, detail_of
from paddlejob.web.views.machine import MachineInfo

BODY_LIMIT = 64 * 1024
USAGE_PAUSE = 2.0


class WebApp:
    def __init__(self, sources: Sequence[Source], access: AccessControl, read_only: bool = False) -> None:
        self.access = access
        self.feed = Feed(sources)
        self.streams = Streams()
        self.read_only = read_only
        self._files = StaticFiles()

    def build(self) -> web.Application:
        app = web.Application(middlewares=[errors, self.access.middleware], client_max_size=BODY_LIMIT)
        app.on_response_prepare.append(add_headers)
        job = "/api/jobs/{target}/{namespace}/{name}"
        app.add_routes(
            [
                web.get("/", self.index),
                web.get("/static/{file}", self._files.serve),
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

    async def index(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token for a cookie; with the cookie, the page; with neither, how to get in."""
        token = request.query.get("token")
        if token is not None:
            if not self.access.accepts_token(token):
                return self._files.login(request, status=403)
            response = web.Response(status=303, headers={"Location": "/"})
            self.access.start_session(response)
            return response
        if not self.access.has_session(request):
            return self._files.login(request, status=401)
        return self._files.page()

    async def jobs(self, request: web.Request) -> web.Response:
        changes = await self.feed.changes(since=0)
        return reply(request, {"changes": changes, "readOnly": self.read_only})

    async def job_changes(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.send(request, self.feed.follow(number(request, "since")))

    async def machine(self, request: web.Request) -> web.Response:
        return reply(request, [await _machine(source) for source in self.feed.sources.values()])

    async def job(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        return reply(request, await self._detail(source, namespace, name))

    async def job_stream(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.send(request, self._details(*self._job(request)))

    async def plan(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        from paddlejob.web.views.plan import plan_of

        view = await source.view(namespace, name)
        return reply(request, await asyncio.to_thread(plan_of, source.name, view))

    async def series(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        return reply(request, await source.series(namespace, name))

    async def logs(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        return reply(request, await source.logs(namespace, name))

    async def log_stream(self, request: web.Request) -> web.StreamResponse:
        source, namespace, name = self._job(request)
        return await self.streams.send(request, _with_heartbeat(source.follow(namespace, name, log_query(request))))

    async def log_search(self, request: web.Request) -> web.Response:
        source, namespace, name = self._job(request)
        pattern = request.query.get("q", "")
        return reply(request, await source.search(namespace, name, log_query(request), pattern))

    async def log_download(self, request: web.Request) -> web.StreamResponse:
        source, namespace, name = self._job(request)
        query = log_query(request)
        await source.view(namespace, name)
        file = "-".join(part for part in (name, query.replica, str(query.attempt or "")) if part)
        safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-._") else "_" for letter in file)
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/plain; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{safe}.log"',
            }
        )
        async with aclosing(source.download(namespace, name, query)) as blocks:  # type: ignore[type-var]
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
        view, action = await source.view(namespace, name), request.match_info["action"]
        command = arguments(action, view.job.name, source.flags(view.job.namespace), body.get("workers"))
        return reply(request, {"message": await execute(action, command)})

    def _job(self, request: web.Request) -> tuple[Source, str, str]:
        source = self.feed.sources.get(request.match_info["target"])
        if source is None:
            raise BadInput(f"{request.match_info['target']}: is not a target of this server")
        return source, request.match_info["namespace"], request.match_info["name"]

    async def _detail(self, source: Source, namespace: str, name: str) -> Detail:
        view = await source.view(namespace, name)
        return detail_of(source.name, view, await source.usage(view), self.read_only)

    async def _details(self, source: Source, namespace: str, name: str) -> AsyncIterator[Detail | None]:
        """A job whenever it has changed; what its processes use is read less often."""
        last: Detail | None = None
        measured, usage, said = 0.0, {}, time.monotonic()
        while True:
            view = await source.view(namespace, name)
            if time.monotonic() - measured > USAGE_PAUSE:
                measured, usage = time.monotonic(), await source.usage(view)
            found = detail_of(source.name, view, usage, self.read_only)
            if found != last:
                last, said = found, time.monotonic()
                yield found
            elif time.monotonic() - said > HEARTBEAT:
                said = time.monotonic()
                yield None
            await asyncio.sleep(PAUSE)


async def _machine(source: Source) -> MachineInfo:
    """One target that does not answer hides no other."""
    try:
        return await source.machine()
    except PaddleJobError as error:
        described = source.describe()
        return MachineInfo(described.name, described.title, str(error))


async def _with_heartbeat(batches: AsyncIterator[list[Any]]) -> AsyncIterator[list[Any] | None]:
    """An empty batch is sent only if there was nothing for a while, and the first, so that a page knows it is empty."""
    said = 0.0
    async for batch in batches:
        if batch or not said:
            said = time.monotonic()
            yield batch
        elif time.monotonic() - said > HEARTBEAT:
            said = time.monotonic()
            yield None
