"""Starts the server, opens the browser, and ends at once when it is asked to."""

from __future__ import annotations

import asyncio
import errno
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from paddlejob.errors import NotPossible
from paddlejob.web.access import AccessControl
from paddlejob.web.app import WebApp
from paddlejob.web.browser import opened
from paddlejob.web.sources.source import Source

DEFAULT_PORT = 8700
OPEN_FILES = 8192
"""Each connection is an open file, and the usual limit of 1024 is soon reached."""
BACKLOG = 1024
SHUTDOWN_SECONDS = 0.5


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int | None = None
    """None: the default port, or a free one if that is in use."""
    browser: bool = True
    read_only: bool = False


def serve(sources: Sequence[Source], options: Options, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` gets the URL with the token."""
    _raise_file_limit()
    asyncio.run(_serve(sources, options, ready))


async def _serve(sources: Sequence[Source], options: Options, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    listener = listen(options.host, options.port)
    port = listener.getsockname()[1]
    access = AccessControl(options.host, port)
    app = WebApp(sources, access, options.read_only)
    runner = web.AppRunner(
        app.build(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS, handler_cancellation=True, handle_signals=False
    )
    await runner.setup()
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    tasks = [asyncio.create_task(source.run()) for source in sources]
    url = f"http://{shown_host(options.host)}:{port}/?token={access.token}"
    ready(url)
    try:
        with opened(url if options.browser else ""):
            await stop.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cleanup()


def listen(host: str, port: int | None) -> socket.socket:
    """A socket on the port; without one, on the default port or a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (DEFAULT_PORT, 0) if port is None else (port,):
        try:
            return socket.create_server((host, candidate), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and candidate == DEFAULT_PORT and port is None:
                continue
            reason = (error.strerror or str(error)).partition(" (while")[0]
            raise NotPossible(
                f"cannot listen on {host}:{candidate}: {reason}; choose another --port or --host"
            ) from None
    raise AssertionError("port 0 is always free")


def shown_host(host: str) -> str:
    """The host as it stands in a URL; a server that listens everywhere is reached by the name of its machine."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
