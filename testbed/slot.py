"""A numbered directory in the cache that one cluster at a time may use."""

from __future__ import annotations

import fcntl
import itertools
from pathlib import Path
from typing import IO

from testbed.build.binaries import cache_directory


class Slot:
    """The first free slot. `number` distinguishes clusters on one machine; `directory` outlives the cluster."""

    def __init__(self) -> None:
        self.number, self._lock = _take_first_free()
        self.directory = _directory(self.number)

    def release(self) -> None:
        self._lock.close()


def running() -> list[Path]:
    """Return the directories of the slots in use."""
    found: list[Path] = []
    for number in itertools.count():
        if not (_directory(number) / "lock").exists():
            return found
        lock = _take(number)
        if lock is None:
            found.append(_directory(number))
        else:
            lock.close()
    raise AssertionError("unreachable")


def _take_first_free() -> tuple[int, IO[str]]:
    for number in itertools.count():
        if lock := _take(number):
            return number, lock
    raise AssertionError("unreachable")


def _take(number: int) -> IO[str] | None:
    _directory(number).mkdir(parents=True, exist_ok=True)
    lock = (_directory(number) / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _directory(number: int) -> Path:
    return cache_directory() / "clusters" / str(number)
