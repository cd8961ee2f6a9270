"""Computes where to cut: pure arithmetic on counts, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """A range of bytes of one source file, which becomes one file of a part."""

    source: int
    start: int
    length: int | None
    """None: the whole file, whose size is not known in advance."""
    records: int


@dataclass(frozen=True)
class Span:
    """Items `first` (included) to `last` (excluded) of one file."""

    source: int
    first: int
    last: int


def even_ranges(total: int, parts: int) -> list[tuple[int, int]]:
    """Cut `total` items into ranges whose sizes differ by at most one."""
    return [(total * i // parts, total * (i + 1) // parts) for i in range(parts)]


def even_spans(counts: Sequence[int], parts: int) -> list[list[Span]]:
    """Cut the concatenation of files that hold `counts` items into even parts."""
    ranges = even_ranges(sum(counts), parts)
    spans: list[list[Span]] = [[] for _ in ranges]
    part = begin = 0
    for source, count in enumerate(counts):
        end = begin + count
        while part < parts and ranges[part][0] < end:
            first, last = max(ranges[part][0], begin), min(ranges[part][1], end)
            if first < last:
                spans[part].append(Span(source, first - begin, last - begin))
            if ranges[part][1] > end:
                break
            part += 1
        begin = end
    return spans


def byte_pieces(sizes: Sequence[int], parts: int) -> Iterator[list[Piece]]:
    for spans in even_spans(sizes, parts):
        yield [Piece(s.source, s.first, s.last - s.first, s.last - s.first) for s in spans]


def file_pieces(sizes: Sequence[int | None], order: Sequence[int], parts: int) -> Iterator[list[Piece]]:
    """Distribute whole files in the given order, each as one record."""
    for first, last in even_ranges(len(order), parts):
        yield [Piece(source, 0, sizes[source], 1) for source in order[first:last]]
