"""Click logs in the format of the public Criteo data set: per line a label, 13 counts and 26 categories, tab-separated.

As a program it is the reader that Paddle's data set pipes every file through: it converts Criteo lines to Paddle's
MultiSlot lines. It uses only the standard library, so that it starts in milliseconds.
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
    """One impression. `ids` are the hashed categories; 0 is a missing one."""

    label: int
    counts: list[float]
    ids: list[int]


class Part(NamedTuple):
    """The lines of a file to read: every `of`-th, starting at `turn`, at most `limit` (0: no limit)."""

    turn: int = 0
    of: int = 1
    limit: int = 0


def parse(line: str) -> Sample:
    """Parse one line. A category is hashed together with its column, so that columns share no ids."""
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != 1 + COUNTS + CATEGORIES:
        raise ValueError(
            f"expected {1 + COUNTS + CATEGORIES} fields in a Criteo line, found {len(fields)}: {line[:60]!r}"
        )
    counts = [_squash(field) for field in fields[1 : 1 + COUNTS]]
    ids = [_hash(column, field) for column, field in enumerate(fields[1 + COUNTS :])]
    return Sample(int(fields[0]), counts, ids)


def _squash(field: str) -> float:
    """Counts are heavy-tailed: a quarter of the logarithm is mostly between 0 and 1, which trains better."""
    return math.log1p(max(0.0, float(field))) / 4 if field else 0.0


def _hash(column: int, field: str) -> int:
    return 1 + zlib.crc32(f"{column}:{field}".encode()) % (HASH_SPACE - 1) if field else 0


def read(lines: Iterable[str], part: Part, held_out: bool) -> Iterator[Sample]:
    """The samples of one part. Every tenth line is held out for evaluation."""
    taken = 0
    trainable = 0
    for number, line in enumerate(lines):
        if (number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) != held_out:
            continue
        if not held_out:
            trainable += 1
            if trainable % part.of != part.turn:
                continue
        yield parse(line)
        taken += 1
        if taken == part.limit:
            return


def reader_command(part: Part) -> str:
    """The shell command that Paddle pipes training files through; works from any path and directory."""
    script = str(Path(__file__).resolve())
    return shlex.join([sys.executable, "-X", "utf8", script, *(str(number) for number in part)])


def generate(samples: int, seed: int) -> Iterator[str]:
    """Generate learnable click logs from hidden weights of categories, counts and two pairs of columns.

    The hidden weights are the same for every seed, so that all workers see the same distribution.
    """
    hidden = random.Random("truth")
    weight = [[hidden.gauss(0, 0.7) for _ in range(12)] for _ in range(CATEGORIES)]
    slope = [hidden.gauss(0, 0.3) for _ in range(COUNTS)]
    pair = [[hidden.gauss(0, 1.2) for _ in range(12)] for _ in range(12)]
    rng = random.Random(seed)
    for _ in range(samples):
        values = [min(int(rng.expovariate(0.35)), 11) for _ in range(CATEGORIES)]
        counts = [int(rng.expovariate(0.2)) for _ in range(COUNTS)]
        score = sum(weight[column][value] for column, value in enumerate(values))
        score += sum(k * (math.log1p(count) - 1.5) for k, count in zip(slope, counts, strict=True))
        score += pair[values[0]][values[1]] + pair[values[2]][values[3]]
        label = int(rng.random() < 1 / (1 + math.exp(-score)))
        categories = [f"{column:02x}{value:06x}" for column, value in enumerate(values)]
        yield "\t".join([str(label), *map(str, counts), *categories])


def main() -> None:
    """Convert standard input to standard output."""
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
