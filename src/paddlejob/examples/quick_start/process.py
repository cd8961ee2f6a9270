"""What a process of a job owes to those around it: clear lines, a quick and quiet end, patience with its peers."""

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

PATIENCE_SECONDS = 600


def say(line: str) -> None:
    print(line, flush=True)


def quiet() -> contextlib.AbstractContextManager[object]:
    """Keep Paddle's own chatter out of the log; VERBOSE=1 lets it through."""
    if os.getenv("VERBOSE"):
        return contextlib.nullcontext()
    warnings.simplefilter("ignore")
    return contextlib.redirect_stdout(io.StringIO())


def stop_on_signal() -> None:
    """End at once, and take along the helper processes that Paddle starts while the workers meet."""
    parent = os.getpid()

    def stop(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == parent:
            for helper in multiprocessing.active_children():
                helper.kill()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, stop)


def stop_at_once_on_signal() -> None:
    """End in the kernel from here on: no Python runs while Paddle's own loop does, and its handler prints a page."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(endpoints: list[str]) -> None:
    """Return when every endpoint takes connections. Paddle's client gives up on a server that is late."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for endpoint in endpoints:
        host, port = endpoint.rsplit(":", 1)
        while not _open(host.strip("[]"), int(port)):
            if time.monotonic() > deadline:
                sys.exit(f"no server at {endpoint} after {PATIENCE_SECONDS} s: look at the logs of the servers")
            time.sleep(0.3)


def _open(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError:
        return False
    return True
