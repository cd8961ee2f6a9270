"""Files that many small batches of lines are appended to, each opened only once."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_RESERVED = 128
"""Open files that are left to the rest of the process."""


class BucketFiles:
    """Keeps as many files open as the process may; the others are opened for each batch."""

    def __init__(self, paths: Sequence[Path], capacity: int) -> None:
        self._paths, self._capacity = paths, capacity
        self._open: dict[int, IO[bytes]] = {}

    def append(self, number: int, data: bytes) -> None:
        if number in self._open:
            _write_all(self._open[number], data)
        elif len(self._open) < self._capacity:
            self._open[number] = self._paths[number].open("ab", buffering=0)
            _write_all(self._open[number], data)
        else:
            with self._paths[number].open("ab", buffering=0) as file:
                _write_all(file, data)

    def close(self) -> None:
        for file in self._open.values():
            file.close()


@contextmanager
def open_buckets(paths: Sequence[Path]) -> Iterator[BucketFiles]:
    """Open bucket files, with the soft limit on open files raised as far as needed and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = len(paths) + _RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):  # macOS has a lower limit of its own.
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    current = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    capacity = len(paths) if current == resource.RLIM_INFINITY else max(current - _RESERVED, 0)
    buckets = BucketFiles(paths, capacity)
    try:
        yield buckets
    finally:
        buckets.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _write_all(file: IO[bytes], data: bytes) -> None:
    # Without a buffer, which each open file would have in memory, a write may be short, as on a disk that fills up.
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
