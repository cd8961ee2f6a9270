"""The one formula for delays that grow: twice as long each time, up to a longest."""

from __future__ import annotations


def exponential_delay(count: int, first: float, longest: float) -> float:
    """Seconds before try number `count`, from 1 on."""
    return min(first * 2.0 ** min(count - 1, 20), longest)
