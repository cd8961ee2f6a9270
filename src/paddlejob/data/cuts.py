"""Where to cut: pure arithmetic on counts, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """A run of bytes of one source file, which becomes one file of a part."""

    source: int
    start: int
    length: int | None
    """None: all of the file, whose size is not known beforehand."""
    records: int


@dataclass(frozen=True)
class Span:
    """Items `first` to `last` (not included) of one file."""

    source: int
    first: int
    last: int


def even(total: int, parts: int) -> list[tuple[int, int]]:
    """Cut `total` items into ranges whose sizes differ by at most one."""
    return [(total * i // parts, total * (i + 1) // parts) for i in range(parts)]


def spans(counts: Sequence[int], parts: int) -> list[list[Span]]:
    """Cut files that hold `counts` items, laid end to end, into even parts."""
    ranges = even(sum(counts), parts)
    dealt: list[list[Span]] = [[] for _ in ranges]
    part = begin = 0
    for source, count in enumerate(counts):
        end = begin + count
        while part < parts and ranges[part][0] < end:
            first, last = max(ranges[part][0], begin), min(ranges[part][1], end)
            if first < last:
                dealt[part].append(Span(source, first - begin, last - begin))
            if ranges[part][1] > end:
                break
            part += 1
        begin = end
    return dealt


def byte_pieces(sizes: Sequence[int], parts: int) -> Iterator[list[Piece]]:
    for cut in spans(sizes, parts):
        yield [Piece(s.source, s.first, s.last - s.first, s.last - s.first) for s in cut]


def file_pieces(sizes: Sequence[int | None], order: Sequence[int], parts: int) -> Iterator[list[Piece]]:
    """Deal whole files out in the given order, each as one record."""
    for first, last in even(len(order), parts):
        yield [Piece(source, 0, sizes[source], 1) for source in order[first:last]]
