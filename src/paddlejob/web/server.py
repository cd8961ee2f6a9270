"""Starts the server, opens the browser, and ends at once when it is asked to."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aiohttp import web

from paddlejob.web.access import AccessControl
from paddlejob.web.app import WebApp
from paddlejob.web.browser import opened
from paddlejob.web.job_list import JobList
from paddlejob.web.listeners import BACKLOG, DEFAULT_PORT, listen, listen_at, shown_host
from paddlejob.web.sessions import Sessions, announced, link

OPEN_FILES = 8192
"""Each connection is an open file, and the usual limit of 1024 is soon reached."""
SHUTDOWN_SECONDS = 0.5
SILENT = logging.getLogger(f"{__name__}.silent")
SILENT.disabled = True
"""A request that is no HTTP is answered with 400; a traceback for each would fill the terminal."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int | None = None
    """None: the default port, or a free one if that is in use."""
    browser: bool = True
    read_only: bool = False
    socket: Path | None = None
    """A Unix socket to listen on instead of a port; browsers reach it through a tunnel from the default port."""


def serve(lists: Sequence[JobList], options: Options, servers: Path, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` gets a URL that works once, `servers` is where `pdj web --url` looks."""
    raise_file_limit()
    with ExitStack() as stack:
        asyncio.run(_serve(lists, options, servers, ready, stack))


async def _serve(
    lists: Sequence[JobList], options: Options, servers: Path, ready: Callable[[str], None], stack: ExitStack
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    listeners = _listeners(options, stack)
    port = DEFAULT_PORT if options.socket else listeners[0].getsockname()[1]
    url = f"http://{shown_host(options.host)}:{port}/"
    sessions = Sessions(_announce(servers, url, stack))
    app = WebApp(lists, AccessControl(options.host, sessions), options.read_only)
    runner = web.AppRunner(
        app.build(),
        access_log=None,
        logger=SILENT,
        shutdown_timeout=SHUTDOWN_SECONDS,
        handler_cancellation=True,
        handle_signals=False,
    )
    await runner.setup()
    assert runner.server is not None
    accept = partial(app.connections.accept, runner.server)
    listening = [await loop.create_server(accept, sock=one, backlog=BACKLOG) for one in listeners]
    tasks = [asyncio.create_task(run) for run in (*(jobs.run() for jobs in lists), app.connections.close_idle())]
    ready(link(url, sessions.new_token()))
    try:
        with opened(link(url, sessions.new_token()) if options.browser and not options.socket else ""):
            await stop.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in listening:
            one.close()
        await runner.cleanup()


def _listeners(options: Options, stack: ExitStack) -> list[socket.socket]:
    if options.socket is None:
        return listen(options.host, options.port)
    listener = listen_at(options.socket)
    stack.callback(options.socket.unlink, missing_ok=True)
    return [listener]


def _announce(servers: Path, url: str, stack: ExitStack) -> Path | None:
    try:
        return stack.enter_context(announced(servers, url))
    except OSError as error:
        log.warning("`pdj web --url` will not find this server: %s", error)
        return None


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
