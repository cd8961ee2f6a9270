"""Small files that several processes read and write: whole or not at all, and still written when the disk is full."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOM = 16 * 1024
"""A file is padded to this, so that it can be written over in place when there is no room for a new one."""


def write_json(path: Path, content: Any, *, padded: bool = False) -> None:
    text = json.dumps(content, ensure_ascii=False)
    encoded = text.encode()
    if padded:
        encoded = encoded.ljust(ROOM) + b"\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(encoded)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not padded:
            raise
        _write_over(path, encoded)


def _write_over(path: Path, encoded: bytes) -> None:
    with path.open("r+b") as file:
        file.write(encoded)


def read_json(path: Path) -> Any:
    """The content, or None where there is no such file."""
    for attempt in range(20):
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except json.JSONDecodeError:
            if attempt == 19:
                raise
            time.sleep(0.01)
    return None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes respect too, for the time of a few writes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class LifeLock:
    """A lock held for as long as a process lives: whoever finds it free knows that the process is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> bool:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Also what a parent does after a fork: the lock then belongs to the child alone."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_held(path: Path) -> bool:
    """Whether somebody lives who holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
