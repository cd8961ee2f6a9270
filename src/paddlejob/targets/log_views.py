"""Logs of a job as its readers get them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from paddlejob.logs.line import LogLine


@dataclass(frozen=True)
class LogStream:
    """Lines in batches, until there are no more."""

    several: bool
    """Whether they may be of more than one replica, so that each line needs a name."""
    batches: AsyncGenerator[list[LogLine], None]


@dataclass(frozen=True)
class LogRef:
    """A log that exists."""

    attempt: int
    replica: str
    size: int | None = None
    """Bytes, where they are known."""


@dataclass(frozen=True)
class LastOutput:
    """When a replica last wrote to its log."""

    replica: str
    time: float


@dataclass(frozen=True)
class LastLines:
    """The end of one log, without control characters."""

    replica: str = ""
    lines: tuple[str, ...] = ()
