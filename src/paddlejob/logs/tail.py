"""A file that grows, read on from where reading stopped."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlejob.lines import LineSplitter

PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class News:
    """What was added since the last read."""

    lines: list[bytes]
    """Without their ends."""
    skipped: int = 0
    """Bytes before these lines that were left out, because the file grows faster than it is read."""
    replaced: bool = False
    """Whether the file is another than before, or was truncated: these lines are its first."""
    more: bool = False
    """Whether there is more to read now."""


class Tail:
    """Of what is behind, at most the last `most` bytes are read, at first `first`; `piece` bytes at a time."""

    def __init__(
        self, path: Path, offset: int = 0, *, first: int | None = None, most: int | None = None, piece: int = PIECE
    ) -> None:
        self._path = path
        self.offset = offset
        self._limit = first
        self._most = most
        self._piece = piece
        self._inode: int | None = None
        self._splitter = LineSplitter()

    def read(self) -> News:
        """Nothing, as long as the file cannot be read."""
        try:
            stat = self._path.stat()
            replaced = self._inode not in (None, stat.st_ino) or stat.st_size < self.offset
            if replaced:
                self.offset, self._splitter = 0, LineSplitter()
            self._inode = stat.st_ino
            data, skipped = self._read(stat.st_size) if stat.st_size > self.offset else (b"", 0)
        except OSError:
            return News([])
        self._limit = self._most
        return News(self._splitter.feed(data), skipped, replaced, self.offset < stat.st_size)

    def pieces(self) -> Iterator[News]:
        """All that there is to read now."""
        more = True
        while more:
            yield (news := self.read())
            more = news.more

    def _read(self, size: int) -> tuple[bytes, int]:
        """The next bytes, or those near the end, and how many were left out before them.

        Near the end, they begin with a line, or with a state of a progress bar.
        """
        start = self.offset if self._limit is None else max(self.offset, size - self._limit)
        with self._path.open("rb") as file:
            file.seek(start)
            data = file.read(min(size - start, self._piece))
        before, self.offset = self.offset, start + len(data)
        if start == before:
            return data, 0
        self._splitter = LineSplitter()
        cut = data.find(b"\n") + 1 or data.find(b"\r") + 1
        return data[cut:], start + cut - before

    @property
    def unfinished(self) -> bytes:
        """The line that has not ended."""
        return self._splitter.unfinished

    @property
    def bar(self) -> bytes:
        """What a progress bar shows now: the last state of a line that rewrites itself and has not ended."""
        line = self.unfinished.rstrip(b"\r")
        return line[line.rfind(b"\r") + 1 :] if b"\r" in self.unfinished else b""

    def take_states(self) -> bytes:
        """The states of a progress bar that are complete; the newest, which may not be, stays unfinished."""
        return self._splitter.take(self.unfinished.rfind(b"\r") + 1)

    def take_rest(self) -> bytes:
        """A last line without a newline."""
        return self._splitter.take()


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def sampled_lines(path: Path, count: int, block: int = 4096) -> list[bytes]:
    """At most so many whole lines of a file that lie evenly apart, the last of them at its end."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size <= count * block:
                file.seek(0)
                lines = file.read().split(b"\n")[:-1]
                return lines[:: -max(1, math.ceil(len(lines) / count))][::-1]
            found = []
            for number in range(count):
                file.seek(int((size - block) * (number + 1) / count))
                found += file.read(block).split(b"\n")[-2:-1]
            return found
    except OSError:
        return []
