"""Reading a page of the web from front to back, and going on where a connection broke."""

from __future__ import annotations

from time import sleep
from typing import Any, Self

from paddlejob.data.newlines import CHUNK

_TRIES = 4
_SECONDS_BEFORE_A_TRY = 0.5
_PARTIAL_CONTENT = 206


class Page:
    """A page as an open file. A broken connection is made again, from the byte where it broke if the server can.

    That is only done where an ETag or a date says that it is still the same page.
    """

    def __init__(self, fs: Any, url: str, size: int | None, mark: str) -> None:
        self._fs, self._url, self._size, self._mark = fs, url, size, mark
        self._at = self._failed = 0
        self._file: Any = None

    def read(self, count: int) -> bytes:
        while True:
            try:
                chunk = self._next(count)
            # aiohttp's errors have no base class of their own.
            except Exception:
                self._failed += 1
                if self._failed == _TRIES or not self._mark:
                    raise
                self._close()
                sleep(_SECONDS_BEFORE_A_TRY * self._failed)
            else:
                self._at += len(chunk)
                self._failed = 0
                return chunk

    def _next(self, count: int) -> bytes:
        self._file = self._file or self._open()
        chunk: bytes = self._file.read(count)
        if not chunk and self._size is not None and self._at < self._size:
            raise EOFError(f"the server ended it after {self._at} of {self._size} bytes")
        return chunk

    def _open(self) -> Any:
        # Compressed on the way, a page would have another size, and other ranges.
        headers = {**self._fs.kwargs.get("headers", {}), "Accept-Encoding": "identity"}
        if self._at:
            headers |= {"Range": f"bytes={self._at}-", "If-Range": self._mark}
        # With any size at all fsspec does not ask for it once more; a page that is only streamed needs none.
        file = self._fs.open(self._url, "rb", block_size=0, size=self._size or 1, headers=headers)
        if self._at and file.r.status != _PARTIAL_CONTENT:
            _skip(file, self._at)
        return file

    def _close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def _skip(file: Any, count: int) -> None:
    """Read what is already there once more: the server cannot begin in the middle."""
    while count:
        chunk = file.read(min(CHUNK, count))
        if not chunk:
            raise EOFError("it became shorter while it was read")
        count -= len(chunk)
