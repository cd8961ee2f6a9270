"""The log files of a job on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlejob.local.state.logs import is_over
from paddlejob.local.state.store import JobFolder
from paddlejob.web.logs.lines import LogQuery, LogRef, Piece, decode, last_state

FIRST_BYTES = 256 * 1024
"""Of the end of a log, when a page opens it; of all replicas together four times as much."""
BATCH_BYTES = 256 * 1024
"""A replica may add this much between two batches; beyond, its older lines are left out."""


@dataclass(frozen=True)
class LogFile:
    attempt: int
    replica: str
    path: Path


def find_logs(folder: JobFolder) -> list[LogFile]:
    """The logs of training containers, by attempt, role and index."""
    prefix = f"{folder.key[1]}-"
    found = []
    for attempt in _entries(folder.path / "logs"):
        kind, _, number = attempt.name.partition("-")
        if kind != "attempt" or not number.isdecimal():
            continue
        for log in _entries(Path(attempt.path)):
            role, _, index = log.name.removesuffix(".log").removeprefix(prefix).rpartition("-")
            if log.name.endswith(".log") and index.isdecimal() and log.is_file(follow_symlinks=False):
                found.append((int(number), role, int(index), Path(log.path)))
    return [LogFile(attempt, f"{role}-{index}", path) for attempt, role, index, path in sorted(found)]


def choose(files: list[LogFile], query: LogQuery) -> list[LogFile]:
    attempt = query.attempt or max((file.attempt for file in files), default=0)
    return [file for file in files if file.attempt == attempt and query.replica in ("", file.replica)]


def references(files: list[LogFile]) -> list[LogRef]:
    return [LogRef(file.attempt, file.replica, _size(file.path)) for file in files]


class Tail:
    """One log, read from near its end on."""

    def __init__(self, file: LogFile, first_bytes: int) -> None:
        self._file = file
        self._offset = -1
        self._first_bytes = first_bytes
        self._unfinished = b""
        self._bar = ""

    def news(self, over: bool) -> Piece | None:
        """The lines that were added; one without a newline once the job is `over`, or if it is very long."""
        size = _size(self._file.path)
        skipped = self._skip(size)
        text = self._unfinished + self._read(size)
        *lines, unfinished = text.split(b"\n")
        self._unfinished = last_state(unfinished)
        if self._unfinished and (over or len(self._unfinished) > BATCH_BYTES):
            lines, self._unfinished = [*lines, self._unfinished], b""
        rewritten = b"\r" in unfinished or (self._bar and not lines)
        before, self._bar = self._bar, decode(self._unfinished) if rewritten else ""
        if not lines and not skipped and self._bar == before:
            return None
        return Piece(self._file.replica, [decode(line) for line in lines], self._bar, skipped)

    def _skip(self, size: int) -> int:
        """Go near the end; returns how many bytes are left out."""
        start, limit = max(self._offset, 0), self._first_bytes if self._offset < 0 else BATCH_BYTES
        self._offset = start
        if size - start <= limit:
            return 0
        self._offset, self._unfinished = size - limit, b""
        with self._file.path.open("rb") as file:
            file.seek(self._offset)
            self._offset += len(file.readline(limit))
        return self._offset - start

    def _read(self, size: int) -> bytes:
        if size <= self._offset:
            return b""
        with self._file.path.open("rb") as file:
            file.seek(self._offset)
            text = file.read(size - self._offset)
        self._offset += len(text)
        return text


class Follower:
    """The chosen logs of a job. With the latest attempt chosen, it goes on to later ones."""

    def __init__(self, folder: JobFolder, query: LogQuery) -> None:
        self._folder = folder
        self._query = query
        self._tails: dict[Path, Tail] = {}

    def news(self) -> tuple[list[Piece], bool]:
        """What was added since the last call, and whether nothing will be."""
        over = is_over(self._folder)
        chosen = choose(find_logs(self._folder), self._query)
        first_bytes = min(FIRST_BYTES, 4 * FIRST_BYTES // max(1, len(chosen)))
        for file in chosen:
            if file.path not in self._tails:
                self._tails[file.path] = Tail(file, first_bytes)
        return [piece for tail in self._tails.values() if (piece := tail.news(over))], over


def _entries(path: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            yield from entries
    except OSError:
        return


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
