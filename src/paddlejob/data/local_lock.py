"""One run at a time for a directory: a lock that a killed run does not leave behind."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from paddlejob.errors import NotPossible

_TRIES = 1000


@contextmanager
def alone(lock: Path, url: str) -> Iterator[None]:
    """Hold the file `lock`, which is made and at the end removed, with its directory if nothing else is in it."""
    with _held(lock, url):
        try:
            yield
        finally:
            # Removed while it is held: whoever has it open already finds that it is no longer the one.
            lock.unlink(missing_ok=True)
            with suppress(OSError):
                lock.parent.rmdir()


def _held(lock: Path, url: str) -> IO[bytes]:
    for _ in range(_TRIES):
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = lock.open("wb")
        except FileNotFoundError:
            continue  # another run has just removed the directory
        try:
            _take(file, url)
            if _is_still(lock, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()
    raise NotPossible(f"{url}: {lock} cannot be held, as others keep removing it; wait until they have ended")


def _take(file: IO[bytes], url: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise NotPossible(f"{url}: another pdj is writing here; wait until it has ended") from error
        # Some network volumes have no locks at all; there the user has to keep runs apart.


def _is_still(lock: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(lock.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
