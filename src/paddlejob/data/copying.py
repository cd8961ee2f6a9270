"""Copies bytes and computes their checksum in the same pass.

SHA-256 is what `sha256sum` verifies, and on processors with SHA instructions it is faster (1.7 GB/s measured) than
BLAKE2 (0.9 GB/s). hashlib releases the interpreter lock, so hashing overlaps with reading and writing: with two
workers one copies while the other hashes; a single worker hashes on a second thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import IO, Self, TypeVar

from paddlejob.data.progress import Meter

_WORTH_A_THREAD = 1 << 18
_Result = TypeVar("_Result")


class Stopped(Exception):
    """The remaining copies are cancelled because one failed or the user interrupted the run."""


class Copier:
    """Copies on `workers` threads."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="copy")
        self._hashing = ThreadPoolExecutor(1, thread_name_prefix="sha256") if workers == 1 else None
        self._stopped = False

    def copy(self, chunks: Iterable[bytes], sink: IO[bytes], meter: Meter) -> tuple[int, str]:
        """Copy all chunks; return their total size and their SHA-256."""
        digest, size = hashlib.sha256(), 0
        pending: Future[None] | None = None
        for chunk in chunks:
            if self._stopped:
                raise Stopped
            if pending:
                pending.result()
            if self._hashing and len(chunk) >= _WORTH_A_THREAD:
                pending = self._hashing.submit(digest.update, chunk)
            else:
                digest.update(chunk)
                pending = None
            sink.write(chunk)
            size += len(chunk)
            meter.add(len(chunk))
        if pending:
            pending.result()
        return size, digest.hexdigest()

    def map(self, make: Callable[[int], _Result], numbers: Sequence[int]) -> dict[int, _Result]:
        """Call `make` for each number, in this order, on the worker threads; the first failure stops all of them."""
        remaining, results = iter(numbers), dict[int, _Result]()

        def work() -> None:
            for number in remaining:
                if self._stopped:
                    raise Stopped
                results[number] = make(number)

        futures = [self._workers.submit(work) for _ in range(min(self._count, len(numbers)))]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            for failed in (future for future in futures if future.done() and future.exception()):
                failed.result()
        except BaseException:
            self._stopped = True
            self._workers.shutdown(cancel_futures=True)
            raise
        return results

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.shutdown()
        if self._hashing:
            self._hashing.shutdown()
