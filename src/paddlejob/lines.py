"""Splits a stream of bytes into lines, in linear time and bounded memory, whatever a program or a server sends."""

from __future__ import annotations

LONGEST = 1 << 20
"""Bytes. A longer line comes in parts, so that output without newlines does not fill the memory."""


class LineSplitter:
    """`unfinished` is what has come since the last newline."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends."""
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return [self.take()] if self._size > self._longest else []
        lines = [self.take(), *others[:-1]]
        self._keep(others[-1])
        return lines

    @property
    def unfinished(self) -> bytes:
        self._parts = [b"".join(self._parts)]
        return self._parts[0]

    def take(self, size: int | None = None) -> bytes:
        """The unfinished line, or its beginning, which then counts as read."""
        taken, left = self.unfinished[:size], b"" if size is None else self.unfinished[size:]
        self._parts, self._size = [left], len(left)
        return taken

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
