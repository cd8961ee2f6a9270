"""Reads a web page from start to end, and continues where a connection broke."""

from __future__ import annotations

from time import sleep
from typing import Any, Self

from paddlejob.data.drivers.source import CHUNK

_ATTEMPTS = 4
_RETRY_SECONDS = 0.5
_PARTIAL_CONTENT = 206


class Page:
    """A page as an open file that reconnects after a failure, from the byte where it broke if the server can.

    It does so only if an ETag or a date shows that the page is still the same.
    """

    def __init__(self, fs: Any, url: str, size: int | None, mark: str) -> None:
        self._fs, self._url, self._size, self._mark = fs, url, size, mark
        self._position = self._failures = 0
        self._file: Any = None

    def read(self, count: int) -> bytes:
        while True:
            try:
                chunk = self._read_once(count)
            # aiohttp's errors have no common base class.
            except Exception:
                self._failures += 1
                if self._failures == _ATTEMPTS or not self._mark:
                    raise
                self._close()
                sleep(_RETRY_SECONDS * self._failures)
            else:
                self._position += len(chunk)
                self._failures = 0
                return chunk

    def _read_once(self, count: int) -> bytes:
        self._file = self._file or self._open()
        chunk: bytes = self._file.read(count)
        if not chunk and self._size is not None and self._position < self._size:
            raise EOFError(f"the server closed the connection after {self._position} of {self._size} bytes")
        return chunk

    def _open(self) -> Any:
        # A response that is compressed in transit would have another size, and other ranges.
        headers = {**self._fs.kwargs.get("headers", {}), "Accept-Encoding": "identity"}
        if self._position:
            headers |= {"Range": f"bytes={self._position}-", "If-Range": self._mark}
        # Given any size, fsspec does not request it again; a page that is only streamed needs none.
        file = self._fs.open(self._url, "rb", block_size=0, size=self._size or 1, headers=headers)
        if self._position and file.r.status != _PARTIAL_CONTENT:
            _skip(file, self._position)
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
    """Discard what was already read, for servers that do not support ranges."""
    while count:
        chunk = file.read(min(CHUNK, count))
        if not chunk:
            raise EOFError("the page became shorter while it was read")
        count -= len(chunk)
