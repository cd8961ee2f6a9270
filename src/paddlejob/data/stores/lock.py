"""Allows one run at a time per directory, with a lock that a killed run does not leave behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from paddlejob.errors import NotPossible
from paddlejob.locks import try_lock

_ATTEMPTS = 1000


@contextmanager
def exclusive(lock: Path, url: str) -> Iterator[None]:
    """Hold the file `lock`; create it first, and remove it afterwards together with its directory if that is empty."""
    with _acquire(lock, url):
        try:
            yield
        finally:
            # Removed while it is held: a run that already has it open notices that the file was replaced.
            lock.unlink(missing_ok=True)
            with suppress(OSError):
                lock.parent.rmdir()


def _acquire(lock: Path, url: str) -> IO[bytes]:
    for _ in range(_ATTEMPTS):
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = lock.open("wb")
        except FileNotFoundError:
            continue  # another run has just removed the directory
        try:
            _flock(file, url)
            if _is_current(lock, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()
    raise NotPossible(f"{url}: cannot lock {lock}, which other processes keep removing; wait for them to finish")


def _flock(file: IO[bytes], url: str) -> None:
    # Some network volumes do not support locks; there the user has to keep runs apart.
    with suppress(OSError):
        if not try_lock(file.fileno()):
            raise NotPossible(f"{url}: another pdj process is writing here; wait for it to finish")


def _is_current(lock: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(lock.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
