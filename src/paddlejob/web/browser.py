"""Opens the user's browser without showing the token to others: all users can read the command line of a process."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path


@contextmanager
def opened(url: str) -> Iterator[None]:
    """Open the URL by way of a file that only this user can read; it is removed in the end. Empty: open nothing."""
    if not url:
        yield
        return
    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="pdj-web-", delete=True) as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">')
        file.flush()
        webbrowser.open(Path(file.name).as_uri())
        yield
