"""Reviews as lines of text, `number<tab>label<tab>words`: writing learnable ones, and reading them.

Every word leans to one side, and a review's label is the side that most of its words lean to.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

WORDS = 200
HELD_OUT_EVERY = 10
LONGEST = 30


class Review(NamedTuple):
    number: int
    label: int
    words: tuple[int, ...]


def generate(count: int, seed: int = 1) -> Iterator[str]:
    chance = random.Random(seed)
    leanings = [chance.gauss(0, 1) for _ in range(WORDS)]
    for number in range(count):
        words = [chance.randrange(WORDS) for _ in range(chance.randrange(5, LONGEST))]
        label = int(sum(leanings[word] for word in words) > 0)
        yield f"{number}\t{label}\t{' '.join(f'w{word}' for word in words)}\n"


def parse(line: str) -> Review:
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != 3 or fields[1] not in ("0", "1"):
        raise ValueError(f"a review is number, label 0 or 1, and words, with tabs between; this is {line[:60]!r}")
    return Review(int(fields[0]), int(fields[1]), tuple(int(word[1:]) % WORDS for word in fields[2].split()))


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
    """Numbers in few words: 0-99,200-299."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
