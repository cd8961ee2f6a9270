"""Opens the user's browser without showing the token to others: all users can read the command line of a process."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@contextmanager
def opened(url: str) -> Iterator[None]:
    """Open the URL by way of a file that only this user can read; it is removed in the end. Empty: open nothing.

    On a server without a display a text browser would take over the terminal, so none is opened there.
    """
    with ExitStack() as stack:
        if url and (sys.platform == "darwin" or any(map(os.environ.get, DISPLAYS))):
            with suppress(OSError):  # The disk is full; the URL is printed, too.
                file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".html", prefix="pdj-web-"))
                file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">')
                file.flush()
                # In a thread: some browsers return only when they are closed.
                threading.Thread(target=webbrowser.open, args=[Path(file.name).as_uri()], daemon=True).start()
        yield
