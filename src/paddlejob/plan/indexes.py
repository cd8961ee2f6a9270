"""Sets of replica indexes as ranges, "0-3,7", so that a status stays small however many pods there are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

MOST = 100_000
"""More than any job has. Others may write to a status too, and "0-99999999999" would take all memory."""


def format(indexes: Iterable[int]) -> str:
    ordered = enumerate(sorted(set(indexes)))
    runs = [[index for _, index in run] for _, run in groupby(ordered, key=lambda pair: pair[1] - pair[0])]
    return _joined(runs)


def format_order(indexes: Iterable[int]) -> str:
    """Indexes in an order that matters, "0-1,4-5,2-3"."""
    runs = groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0])
    return _joined([[index for _, index in run] for _, run in runs])


def _joined(runs: list[list[int]]) -> str:
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def parse(text: str) -> frozenset[int]:
    return frozenset(parse_order(text))


def parse_order(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        run = range(int(first), int(last or first) + 1)
        if len(found) + len(run) > MOST:
            raise ValueError(f"{text[:80]} names more than {MOST} replicas")
        found.extend(run)
    return found
