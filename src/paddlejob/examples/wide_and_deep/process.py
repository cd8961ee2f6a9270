"""Process helpers for programs with parameter servers: logging, signals, and waiting for the servers."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import socket
import sys
import time
import warnings
from types import FrameType

WAIT_SECONDS = 600


def log(line: str) -> None:
    print(line, flush=True)


def quiet() -> contextlib.AbstractContextManager[object]:
    """Suppress Paddle's own output, unless VERBOSE=1 is set."""
    if os.getenv("VERBOSE"):
        return contextlib.nullcontext()
    warnings.simplefilter("ignore")
    return contextlib.redirect_stdout(io.StringIO())


def exit_on_sigterm() -> None:
    """Exit at once, and kill the helper processes that Paddle starts for gloo's rendezvous."""
    parent = os.getpid()

    def handle(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == parent:
            for helper in multiprocessing.active_children():
                helper.kill()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, handle)


def restore_default_signals() -> None:
    """Let the kernel handle signals: no Python handler runs inside Paddle's loop, and Paddle's own prints a page."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(endpoints: list[str]) -> None:
    """Wait until every endpoint accepts connections. Paddle's client gives up on a server that starts late."""
    deadline = time.monotonic() + WAIT_SECONDS
    for endpoint in endpoints:
        host, port = endpoint.rsplit(":", 1)
        while not _accepts_connections(host.strip("[]"), int(port)):
            if time.monotonic() > deadline:
                sys.exit(f"no server at {endpoint} after {WAIT_SECONDS} s; see the logs of the servers")
            time.sleep(0.3)


def _accepts_connections(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError:
        return False
    return True
