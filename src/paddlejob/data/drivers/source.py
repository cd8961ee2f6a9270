"""A source file, and how ranges of it are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paddlejob.data.drivers.errors import translate_read_errors
from paddlejob.data.drivers.local_files import LocalFiles
from paddlejob.data.drivers.resolve import is_web
from paddlejob.data.drivers.urls import identifying_query, redact
from paddlejob.errors import NotPossible

CHUNK = 1 << 20
"""Bytes that are read at once."""
_CHANGE_MARKS = (
    "ETag", "etag", "mtime", "LastModified", "last_modified", "Last-Modified", "modificationTime", "modified",
    "created",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A file to read; `name` is its path below the directory that the user specified."""

    name: str
    path: str
    fs: Any
    size: int | None
    mark: str
    """Changes when the file does: an ETag or a modification time."""

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFiles)

    @property
    def is_seekable(self) -> bool:
        """HTTP servers need not support ranges, so their files are only read from start to end."""
        return not is_web(self.fs)

    @property
    def shown(self) -> str:
        """The path as it may appear in a message."""
        return redact(self.path)

    def chunks(self, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield `length` bytes from `start` on, or all that follow."""
        left = length if length is not None or self.size is None else self.size - start
        with translate_read_errors(self.shown), self._open(start) as file:
            while left is None or left > 0:
                chunk = file.read(CHUNK if left is None else min(CHUNK, left))
                if not chunk:
                    break
                yield chunk
                if left is not None:
                    left -= len(chunk)
        if left:
            raise NotPossible(
                f"{self.shown}: ended {left} bytes early; run the same command again once the file is complete"
            )

    def _open(self, start: int) -> Any:
        if is_web(self.fs):
            from paddlejob.data.drivers.web import Page

            return Page(self.fs, self.path, self.size, self.mark)
        file = self.fs.open(self.path, "rb", block_size=8 * CHUNK)
        file.seek(start)
        return file

    def check_unchanged(self) -> None:
        """Raise if the file has changed since it was found."""
        with translate_read_errors(self.shown):
            self.fs.invalidate_cache(self.path)
            current = size_and_mark(self.fs.info(self.path))
        if current != (self.size, self.mark):
            raise NotPossible(
                f"{self.shown}: changed while it was read; run the same command again once nothing writes to it"
            )


def digest(sources: Sequence[Source]) -> str:
    """Return a hash that is equal for equal names, sizes, change marks and queries."""
    summary = hashlib.sha256()
    for source in sources:
        query = identifying_query(source.path)
        identity = [source.name, source.size, source.mark, *([query] if query else [])]
        summary.update(json.dumps(identity).encode() + b"\n")
    return summary.hexdigest()


def size_and_mark(info: dict[str, Any]) -> tuple[int | None, str]:
    mark = next((info[key] for key in _CHANGE_MARKS if info.get(key) is not None), "")
    # Some drivers return a number when listing files and a date when asked for one file.
    return info.get("size"), str(mark.timestamp() if isinstance(mark, datetime) else mark)
