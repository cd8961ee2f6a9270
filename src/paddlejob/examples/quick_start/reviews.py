"""Reviews as lines of text, `number<tab>label<tab>tokens`: generating and parsing them.

Every token has a hidden weight; a generated review is positive if the weights of its tokens add up to more than 0.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

VOCABULARY_SIZE = 200
HELD_OUT_EVERY = 10
MAX_TOKENS = 30


class Review(NamedTuple):
    number: int
    label: int
    tokens: tuple[int, ...]


def generate(count: int, seed: int = 1) -> Iterator[str]:
    rng = random.Random(seed)
    weights = [rng.gauss(0, 1) for _ in range(VOCABULARY_SIZE)]
    for number in range(count):
        tokens = [rng.randrange(VOCABULARY_SIZE) for _ in range(rng.randrange(5, MAX_TOKENS))]
        label = int(sum(weights[token] for token in tokens) > 0)
        yield f"{number}\t{label}\t{' '.join(f'w{token}' for token in tokens)}\n"


def parse(line: str) -> Review:
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != 3 or fields[1] not in ("0", "1"):
        raise ValueError(f"expected a number, a label (0 or 1) and tokens, separated by tabs; found {line[:60]!r}")
    return Review(
        int(fields[0]), int(fields[1]), tuple(int(token[1:]) % VOCABULARY_SIZE for token in fields[2].split())
    )


def read(directory: Path) -> list[Review]:
    """All reviews of a directory, in the order of its files."""
    found = []
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        with file.open(encoding="utf-8") as lines:
            found += [parse(line) for line in lines]
    return found


def held_out(review: Review) -> bool:
    return review.number % HELD_OUT_EVERY == 0


def ranges(numbers: Iterable[int]) -> str:
    """Format numbers as ranges: 0-99,200-299."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
