"""Sets of replica indexes as ranges, "0-3,7", so that a status stays small however many pods there are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby


def format(indexes: Iterable[int]) -> str:
    ordered = enumerate(sorted(set(indexes)))
    runs = [[index for _, index in run] for _, run in groupby(ordered, key=lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def parse(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
