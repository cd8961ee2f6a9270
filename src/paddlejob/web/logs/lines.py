"""Which log, pieces of it, and the result of a search."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paddlejob.errors import BadInput

REPLICA = re.compile(r"(ps|worker|heter)-(0|[1-9][0-9]{0,5})")


@dataclass(frozen=True)
class LogRef:
    """A log that exists."""

    attempt: int
    replica: str
    size: int | None = None
    """Bytes, where they are known."""


@dataclass(frozen=True)
class LogQuery:
    """One replica or all, in one attempt; 0 stands for the latest."""

    replica: str = ""
    attempt: int = 0

    @property
    def role(self) -> str:
        return self.replica.rpartition("-")[0]

    @property
    def index(self) -> int | None:
        return int(self.replica.rpartition("-")[2]) if self.replica else None


@dataclass(frozen=True)
class Piece:
    """Lines of one replica that follow each other."""

    replica: str
    lines: list[str]
    bar: str = ""
    """What a progress bar after these lines shows now: a line that rewrites itself and has not ended."""
    skipped: int = 0
    """Bytes before these lines that were left out, because the log grows faster than a page can show."""


@dataclass(frozen=True)
class Match:
    replica: str
    attempt: int
    line: int
    """Its number, from 1."""
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    """Where the pattern matches, in UTF-16 code units, as JavaScript counts."""


@dataclass(frozen=True)
class Matches:
    found: list[Match]
    complete: bool
    """Whether these are all; otherwise the search stopped at the limit."""
    searched: int
    """Bytes."""


def parse_query(replica: str, attempt: str) -> LogQuery:
    """From the URL; raises BadInput."""
    if replica and not REPLICA.fullmatch(replica):
        raise BadInput(f"{replica!r}: is not a replica; use a name such as worker-0")
    if attempt and not re.fullmatch("[0-9]{1,9}", attempt):
        raise BadInput(f"attempt {attempt!r}: is not a number")
    return LogQuery(replica, int(attempt or 0))


def last_state(line: bytes) -> bytes:
    """Of a line that may be unfinished: if it is a progress bar that rewrites itself, only what it shows now."""
    cut = line.rfind(b"\r", 0, -1)
    return line[cut + 1 :]


def decode(line: bytes, limit: int = 10_000) -> str:
    """A line as text; of a progress bar that rewrites itself only the last state."""
    text = last_state(line.rstrip(b"\r\n"))[: limit * 4].decode(errors="replace")
    return text if len(text) <= limit else f"{text[:limit]}…"
