"""URLs and file names as text."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit, urlunsplit


def redact(url: str) -> str:
    """Return the URL without user, password and query, which may contain credentials."""
    parsed = urlsplit(url)
    if not parsed.netloc:
        return url
    return urlunsplit((parsed.scheme, parsed.netloc.rpartition("@")[2], parsed.path, "", ""))


def is_below(name: str) -> bool:
    """Whether a name, appended to a directory, refers to something inside it."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts
