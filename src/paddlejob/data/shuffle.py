"""Shuffling more lines than fit into memory.

Each line goes to a bucket drawn at random; then each bucket, small enough for memory, is put into random
order. The buckets one after another are a uniformly random order of all lines, and parts are cut from that.
Memory is bounded by BUFFER plus one bucket (BUCKET_BYTES, BUCKET_RECORDS) plus the longest line, whatever the
size of the input; scratch on disk is once the input. Only Random.random() is used, whose sequence for a seed
Python keeps from version to version.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from paddlejob.data.cuts import even
from paddlejob.data.lines import LineIndex
from paddlejob.data.newlines import CHUNK
from paddlejob.data.progress import Meter
from paddlejob.data.sources import Source

BUFFER = 64 << 20
BUCKET_BYTES = 16 << 20
BUCKET_RECORDS = 200_000
_LINE_OVERHEAD = 48


class Shuffled:
    """All lines of the sources in random order, kept in buckets under `scratch`."""

    def __init__(self, scratch: Path, seed: int, indexes: Sequence[LineIndex]) -> None:
        size, records = sum(index.size for index in indexes), sum(index.records for index in indexes)
        count = 1 + max(size // BUCKET_BYTES, records // BUCKET_RECORDS)
        self._paths = [scratch / f"bucket-{number:06}" for number in range(count)]
        self._held = array("Q", bytes(8 * count))
        self._seed = seed
        self.records = records

    def scatter(self, sources: Sequence[Source], meter: Meter) -> None:
        """Send every line to its bucket. A last line without a newline gets one, as others may follow it."""
        draw, count = Random(f"{self._seed}:scatter").random, len(self._paths)
        waiting: list[list[bytes]] = [[] for _ in self._paths]
        buffered = 0
        for source in sources:
            for lines, size in _lines(source):
                for line in lines:
                    waiting[int(draw() * count)].append(line)
                meter.add(size)
                buffered += size + _LINE_OVERHEAD * len(lines)
                if buffered > BUFFER:
                    self._flush(waiting)
                    buffered = 0
        self._flush(waiting)

    def share(self, part: int, parts: int) -> int:
        first, last = even(self.records, parts)[part]
        return last - first

    def part(self, part: int, parts: int) -> Iterator[bytes]:
        """The lines of one part: an even range of the shuffled order."""
        first, last = even(self.records, parts)[part]
        ends = list(accumulate(self._held))
        for number, end in enumerate(ends):
            begin = end - self._held[number]
            if begin < last and first < end:
                lines = self._bucket(number)
                yield from _chunks(lines[max(first - begin, 0) : last - begin])

    def _bucket(self, number: int) -> list[bytes]:
        lines = self._paths[number].read_bytes().split(b"\n")
        lines.pop()
        mix(lines, Random(f"{self._seed}:{number}"))
        return lines

    def _flush(self, waiting: Sequence[list[bytes]]) -> None:
        # Opened for each flush: there may be more buckets than a process may hold open.
        for number, lines in enumerate(waiting):
            self._held[number] += len(lines)
            with self._paths[number].open("ab", buffering=0) as file:
                if lines:
                    file.write(b"\n".join(lines) + b"\n")
            lines.clear()


def mix(items: list[Any], random: Random) -> None:
    """Put a list in random order. Random.shuffle does too, but may give another order in another version."""
    draw = random.random
    for last in range(len(items) - 1, 0, -1):
        at = int(draw() * (last + 1))
        items[last], items[at] = items[at], items[last]


def _lines(source: Source) -> Iterator[tuple[list[bytes], int]]:
    """Lines without their newlines, a chunk's worth at a time, with the number of bytes read for them."""
    open_line: list[bytes] = []
    for chunk in source.chunks():
        first, *others = chunk.split(b"\n")
        open_line.append(first)
        if others:
            lines = [b"".join(open_line), *others]
            open_line = [lines.pop()]
            yield lines, len(chunk)
        else:
            yield [], len(chunk)
    if last := b"".join(open_line):
        yield [last], 0


def _chunks(lines: Sequence[bytes]) -> Iterator[bytes]:
    step = CHUNK // 64
    for at in range(0, len(lines), step):
        yield b"\n".join(lines[at : at + step]) + b"\n"
