"""Shuffles more lines than fit into memory.

Each line goes to a random bucket; then each bucket, which fits into memory, is shuffled. The concatenated buckets are a
uniformly random permutation of all lines, and parts are cut from it. Memory is bounded by BUFFER plus one bucket
(BUCKET_BYTES, BUCKET_RECORDS) plus the longest line, whatever the size of the input; scratch space is the size of the
input. Only Random.random() is used, because Python keeps its sequence for a seed from version to version.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from pathlib import Path
from random import Random
from typing import Any

from paddlejob.data.drivers.source import CHUNK, Source
from paddlejob.data.partition.buckets import BucketFiles, open_buckets
from paddlejob.data.partition.cuts import even_ranges
from paddlejob.data.progress import Meter

BUFFER = 64 << 20
BUCKET_BYTES = 16 << 20
BUCKET_RECORDS = 200_000
_LINE_OVERHEAD = 48


class Shuffled:
    """All lines of the sources in random order, stored in buckets under `scratch`."""

    def __init__(self, scratch: Path, seed: int, size: int, records: int) -> None:
        count = 1 + max(size // BUCKET_BYTES, records // BUCKET_RECORDS)
        self._paths = [scratch / f"bucket-{number:06}" for number in range(count)]
        self._counts = array("Q", bytes(8 * count))
        self._seed = seed
        self.records = records

    def scatter(self, sources: Sequence[Source], starts: Sequence[int], meter: Meter) -> None:
        """Write each line from `starts` on to its bucket. A last line without a newline gets one."""
        draw, count = Random(f"{self._seed}:scatter").random, len(self._paths)
        waiting: list[list[bytes]] = [[] for _ in self._paths]
        buffered = 0
        with open_buckets(self._paths) as buckets:
            for lines, size in chain.from_iterable(map(_lines, sources, starts)):
                for line in lines:
                    waiting[int(draw() * count)].append(line)
                meter.add(size)
                buffered += size + _LINE_OVERHEAD * len(lines)
                if buffered > BUFFER:
                    self._flush(waiting, buckets)
                    buffered = 0
            self._flush(waiting, buckets)

    def records_in(self, part: int, parts: int) -> int:
        first, last = even_ranges(self.records, parts)[part]
        return last - first

    def part(self, part: int, parts: int) -> Iterator[bytes]:
        """Yield the lines of one part: an even range of the shuffled order."""
        first, last = even_ranges(self.records, parts)[part]
        ends = list(accumulate(self._counts))
        for number, end in enumerate(ends):
            begin = end - self._counts[number]
            if begin < end and begin < last and first < end:
                lines = self._bucket(number)
                yield from _chunks(lines[max(first - begin, 0) : last - begin])

    def _bucket(self, number: int) -> list[bytes]:
        lines = self._paths[number].read_bytes().split(b"\n")
        lines.pop()
        permute(lines, Random(f"{self._seed}:{number}"))
        return lines

    def _flush(self, waiting: Sequence[list[bytes]], buckets: BucketFiles) -> None:
        for number, lines in enumerate(waiting):
            if lines:
                self._counts[number] += len(lines)
                buckets.append(number, b"\n".join(lines) + b"\n")
                lines.clear()


def permute(items: list[Any], random: Random) -> None:
    """Shuffle a list in place. Random.shuffle may produce another order in another version of Python."""
    draw = random.random
    for last in range(len(items) - 1, 0, -1):
        at = int(draw() * (last + 1))
        items[last], items[at] = items[at], items[last]


def _lines(source: Source, start: int) -> Iterator[tuple[list[bytes], int]]:
    """Yield lines without their newlines, one chunk at a time, with the number of bytes that were read for them."""
    open_line: list[bytes] = []
    for chunk in source.chunks(start):
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
