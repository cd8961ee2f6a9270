"""Click logs in the format of the public Criteo data set: a label, 13 counts and 26 categories a line, tab-separated.

Run as a program it is the reader that Paddle's data set pipes every file through: Criteo lines in, Paddle's
MultiSlot lines out. It needs only the standard library, so that it starts in milliseconds.
"""

from __future__ import annotations

import argparse
import math
import random
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

COUNTS = 13
CATEGORIES = 26
HASH_SPACE = 1_000_003
HELD_OUT_EVERY = 10


class Sample(NamedTuple):
    """One impression. `ids` are the hashed categories; 0 stands for a missing one."""

    label: int
    counts: list[float]
    ids: list[int]


class Part(NamedTuple):
    """Which lines of a file are read: every `of`-th, where `turn` says which, at most `limit` (0: all of them)."""

    turn: int = 0
    of: int = 1
    limit: int = 0


def parse(line: str) -> Sample:
    """Read one line. A category is hashed together with its column, so that columns share no id."""
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != 1 + COUNTS + CATEGORIES:
        raise ValueError(f"a Criteo line has {1 + COUNTS + CATEGORIES} fields, this one {len(fields)}: {line[:60]!r}")
    counts = [_squash(field) for field in fields[1 : 1 + COUNTS]]
    ids = [_hash(column, field) for column, field in enumerate(fields[1 + COUNTS :])]
    return Sample(int(fields[0]), counts, ids)


def _squash(field: str) -> float:
    """Counts are heavy-tailed: a quarter of their logarithm is mostly between 0 and 1, and trains better."""
    return math.log1p(max(0.0, float(field))) / 4 if field else 0.0


def _hash(column: int, field: str) -> int:
    return 1 + zlib.crc32(f"{column}:{field}".encode()) % (HASH_SPACE - 1) if field else 0


def read(lines: Iterable[str], part: Part, held_out: bool) -> Iterator[Sample]:
    """The samples of one part. Every tenth line is held out: read only to test, by whoever asks for it."""
    taken = 0
    mine = 0
    for number, line in enumerate(lines):
        if (number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) != held_out:
            continue
        if not held_out:
            mine += 1
            if mine % part.of != part.turn:
                continue
        yield parse(line)
        taken += 1
        if taken == part.limit:
            return


def reader_command(part: Part) -> str:
    """The shell command that Paddle pipes a file of training data through; right in any path and directory."""
    script = str(Path(__file__).resolve())
    words = [sys.executable, "-X", "utf8", script, *(str(number) for number in part)]
    return " ".join(shlex.quote(word) for word in words)


def generate(samples: int, seed: int) -> Iterator[str]:
    """Make click logs that can be learned: hidden weights of categories, of counts and of two pairs of columns.

    The hidden weights are the same for every seed, so that all workers see one truth.
    """
    truth = random.Random("truth")
    weight = [[truth.gauss(0, 0.7) for _ in range(12)] for _ in range(CATEGORIES)]
    slope = [truth.gauss(0, 0.3) for _ in range(COUNTS)]
    pair = [[truth.gauss(0, 1.2) for _ in range(12)] for _ in range(12)]
    chance = random.Random(seed)
    for _ in range(samples):
        values = [min(int(chance.expovariate(0.35)), 11) for _ in range(CATEGORIES)]
        counts = [int(chance.expovariate(0.2)) for _ in range(COUNTS)]
        score = sum(weight[column][value] for column, value in enumerate(values))
        score += sum(k * (math.log1p(count) - 1.5) for k, count in zip(slope, counts, strict=True))
        score += pair[values[0]][values[1]] + pair[values[2]][values[3]]
        label = int(chance.random() < 1 / (1 + math.exp(-score)))
        words = [f"{column:02x}{value:06x}" for column, value in enumerate(values)]
        yield "\t".join([str(label), *map(str, counts), *words])


def main() -> None:
    """Be the reader: standard input to standard output."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name in Part._fields:
        arguments.add_argument(name, type=int)
    part = Part(**vars(arguments.parse_args()))
    for sample in read(sys.stdin, part, held_out=False):
        counts = " ".join(f"{count:.4f}" for count in sample.counts)
        ids = " ".join(map(str, sample.ids))
        sys.stdout.write(f"1 {sample.label} {COUNTS} {counts} {CATEGORIES} {ids}\n")


if __name__ == "__main__":
    main()
