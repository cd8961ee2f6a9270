"""Charts that fit into one line of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

LEVELS = "▁▂▃▄▅▆▇█"
FULL, HALF, EMPTY = "━", "╸", "━"


def bar(fraction: float, width: int) -> tuple[str, str]:
    """The done and the remaining part of a progress bar."""
    halves = round(max(0.0, min(1.0, fraction)) * width * 2)
    done = FULL * (halves // 2) + (HALF if halves % 2 else "")
    return done, EMPTY * (width - len(done))


def sparkline(values: Sequence[float], width: int) -> str:
    """The course of the values; each character is the mean of as many of them as needed."""
    means = _means(values, width)
    low, high = min(means, default=0.0), max(means, default=0.0)
    # Halves: the difference of 1e308 and -1e308 is no number.
    scale = high / 2 - low / 2 or 1.0
    return "".join(LEVELS[round((value / 2 - low / 2) / scale * (len(LEVELS) - 1))] for value in means)


def _means(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    cuts = [len(values) * index // width for index in range(width + 1)]
    return [sum(value / (end - start) for value in values[start:end]) for start, end in pairwise(cuts)]
