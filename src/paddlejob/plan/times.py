"""Times as Kubernetes writes them, and as seconds since the epoch."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def format(moment: float) -> str:
    return datetime.fromtimestamp(math.floor(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)
