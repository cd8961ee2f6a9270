"""Times as Kubernetes writes them, and as seconds since the epoch."""

from __future__ import annotations

import math
from datetime import UTC, datetime

LATEST = 253_402_300_000.0
"""The end of the year 9999, the last that can be written."""


def format(moment: float) -> str:
    return datetime.fromtimestamp(math.floor(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_exact(moment: float) -> str:
    """With milliseconds, rounded up, for a time that must not come too early."""
    return datetime.fromtimestamp(math.ceil(moment * 1000) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def parse(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)
