"""Counting lines at the speed of memory, and finding where a given line starts.

A record is everything up to and including a newline; what follows the last newline is a record too. CR is
part of the record. Nothing is parsed: newlines are counted chunk by chunk, and only the chunks that hold a
cut are looked at again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from paddlejob.data.cuts import Piece, spans
from paddlejob.data.newlines import CHUNK, count
from paddlejob.data.progress import Meter
from paddlejob.data.sources import Source


class LineIndex:
    """How many newlines stand before the end of each chunk: 8 bytes of memory for each MiB of data."""

    def __init__(self, source: Source, meter: Meter) -> None:
        self._source = source
        self._newlines = array("Q", accumulate(_counted(source, meter)))
        self.size = source.size or 0
        ends_open = self.size and next(iter(source.chunks(self.size - 1, 1))) != b"\n"
        self.records = (self._newlines[-1] if self._newlines else 0) + bool(ends_open)

    def offset(self, record: int) -> int:
        """The byte at which record number `record` starts; the end of the file for the one after the last."""
        if record == 0:
            return 0
        if record == self.records:
            return self.size
        block = bisect_left(self._newlines, record)
        start, before = block * CHUNK, self._newlines[block - 1] if block else 0
        chunk = b"".join(self._source.chunks(start, min(CHUNK, self.size - start)))
        return start + _after_newline(chunk, record - before)


def line_pieces(indexes: Sequence[LineIndex], parts: int) -> Iterator[list[Piece]]:
    """Cut files, laid end to end, into parts whose numbers of lines differ by at most one."""
    for cut in spans([index.records for index in indexes], parts):
        pieces = []
        for span in cut:
            start, end = (indexes[span.source].offset(record) for record in (span.first, span.last))
            pieces.append(Piece(span.source, start, end - start, span.last - span.first))
        yield pieces


def _counted(source: Source, meter: Meter) -> Iterator[int]:
    """The newlines of each chunk, whatever pieces the source comes in."""
    held = newlines = 0
    bytes_per_line = 0.0
    for data in source.chunks(0, source.size):
        meter.add(len(data))
        while data:
            taken = data[: CHUNK - held]
            found = count(taken, bytes_per_line)
            bytes_per_line = len(taken) / (found + 1)
            newlines, held, data = newlines + found, held + len(taken), data[len(taken) :]
            if held == CHUNK:
                yield newlines
                held = newlines = 0
    if held:
        yield newlines


def _after_newline(chunk: bytes, nth: int) -> int:
    """The position after the nth newline (from 1), halving the range until it is found."""
    low, high = 0, len(chunk)
    while high - low > 1:
        middle = (low + high) // 2
        here = chunk.count(b"\n", low, middle)
        if nth <= here:
            high = middle
        else:
            low, nth = middle, nth - here
    return high
