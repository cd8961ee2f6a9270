"""The selected logs of a job on this machine, as they grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlejob.logs.files import LogFile, select_logs, start_of
from paddlejob.logs.line import LogLine, last_state, shown
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.tail import Tail

BAR_SECONDS = 5.0
"""How often a progress bar is shown among the lines of other replicas: it has no newline until it ends."""
PAGE_BYTES = 256 * 1024
"""Of the end of a log, when a page opens it, and of what a replica adds between two looks of a page."""


@dataclass(frozen=True)
class LogPiece:
    """Lines of one replica that follow each other, for a page."""

    replica: str
    lines: list[str]
    bar: str = ""
    """What a progress bar after these lines shows now: a line that rewrites itself and has not ended."""
    skipped: int = 0
    """Bytes before these lines that were left out, because the log grows faster than a page can show."""


class PageFollower:
    """The end of each log, then what is added. With the latest attempt selected, it goes on to later ones."""

    def __init__(self, job: Path, name: str, selection: LogSelection) -> None:
        self._job = job
        self._name = name
        self._selection = selection
        self._followed: dict[Path, _Followed] = {}

    def news(self, over: bool) -> list[LogPiece]:
        """What was added since the last call; if the job is over, also lines that have not ended."""
        chosen = select_logs(self._job, self._name, self._selection)
        first = min(PAGE_BYTES, 4 * PAGE_BYTES // max(1, len(chosen)))
        for log in chosen:
            if log.path not in self._followed:
                self._followed[log.path] = _Followed(log.replica, Tail(log.path, first=first, most=PAGE_BYTES))
        return [piece for one in self._followed.values() if (piece := one.news(over))]


@dataclass
class _Followed:
    replica: str
    tail: Tail
    bar: bytes = b""
    """As the page shows it."""

    def news(self, over: bool) -> LogPiece | None:
        news, before = self.tail.read(), self.bar
        ends = over or len(self.tail.unfinished) > PAGE_BYTES
        rest = [self.tail.take_rest()] if self.tail.unfinished and ends else []
        self.bar = self.tail.bar
        lines = [shown(line) for line in (*news.lines, *rest)]
        changed = lines or news.skipped or self.bar != before
        return LogPiece(self.replica, lines, shown(self.bar), news.skipped) if changed else None


def read_logs(
    job: Path, name: str, selection: LogSelection, several: bool, over: Callable[[], bool] | None = None
) -> Iterator[list[LogLine]]:
    """The selected lines, in batches; with `over`, also those that are added until it is true.

    An empty batch means that nothing was added, and that the caller should wait before the next.

    Of several replicas, lines come whole, and of a progress bar only the last state. A single one is not waited for:
    what it has printed of a line comes with an empty end.
    """
    followed: dict[Path, _Printed] = {}
    while True:
        done = over is None or over()
        for log in select_logs(job, name, selection):
            if log.path not in followed:
                followed[log.path] = _Printed(log, selection, several)
        for one in followed.values():
            yield from one.news(done)
        if done:
            return
        yield []


class _Printed:
    def __init__(self, log: LogFile, selection: LogSelection, several: bool) -> None:
        self._log = log
        self._selection = selection
        self._several = several
        self._tail = Tail(log.path, start_of(log.path, selection))
        self._bar_shown = time.monotonic()

    def news(self, over: bool) -> Iterator[list[LogLine]]:
        for news in self._tail.pieces():
            if found := self._lines(news.lines):
                yield found
        rest, whole = self._rest(over), self._several or self._selection.pattern
        if rest and (found := self._lines([rest], b"\n" if whole else b"")):
            yield found

    def _rest(self, over: bool) -> bytes:
        """What is shown of a line that has not ended."""
        if over or not (self._several or self._selection.pattern):
            return self._tail.take_rest()
        if self._tail.bar and time.monotonic() - self._bar_shown >= BAR_SECONDS:
            self._bar_shown = time.monotonic()
            return self._tail.take_states()
        return b""

    def _lines(self, contents: list[bytes], end: bytes = b"\n") -> list[LogLine]:
        replica, attempt, pattern = self._log.replica, self._log.attempt, self._selection.pattern
        if pattern:
            contents = [one for one in contents if pattern.search(one)]
        if self._several:
            contents = [last_state(one, pattern) for one in contents]
        return [LogLine(replica, attempt, None, one, end) for one in contents]
