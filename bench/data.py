"""How fast `pdj data` is against the tools everybody has, in one run: python -m bench.data.

Each row is a pair that ends with the same data on disk: what a user would type without us, and `pdj` as it is
typed, start-up included. Both sides are timed until their last output is on disk (`sync FILE...`, which is one
fsync a file; a split does that itself), in turn, and each round gives one ratio; the median counts. Ours also
counts exactly, makes checksums and can go on after a kill. The aim is at most 1.3 for lines. For that it needs twice
the time on processors, on two at once: on a machine that others keep busy the ratio grows.

The source is read before, so it comes from memory: what is measured is the disk that is written to. By default
it has 2 GiB, in lines of 91 bytes on average; by files it is the same in 64 files of 32 MiB; and once more
in 2000 files of 64 KiB (125 MiB).
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

AIM = 1.3
PARTS = 4
PDJ = f"{Path(sys.executable).with_name('pdj')} data"
ROWS = {
    "split --by lines": (
        f"split -n l/{PARTS} train.txt pieces && mkdir floor && cp pieces* floor && sync floor/*",
        f"{PDJ} split train.txt ours --parts {PARTS}",
    ),
    "split --by bytes": (
        f"split -n {PARTS} train.txt pieces && mkdir floor && cp pieces* floor && sync floor/*",
        f"{PDJ} split train.txt ours --parts {PARTS} --by bytes",
    ),
    "split --by files": ("cp -r files floor && sync floor/*", f"{PDJ} split files ours --parts {PARTS} --by files"),
    "split, small files": ("cp -r small floor && sync floor/*", f"{PDJ} split small ours --parts {PARTS} --by files"),
    "stage": ("cp -r files floor && sync floor/*", f"{PDJ} stage files ours && sync ours/*"),
}
"""What is done, what it is measured against, and how it is typed."""


@dataclass(frozen=True)
class Taken:
    seconds: float
    processor: float
    """Seconds on processors, of the commands themselves and not of the kernel's own threads."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mib", type=int, default=2048, help="how much data")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--dir", help="where to work: on the disk that is meant; a temporary directory by default")
    options.add_argument("--only", choices=ROWS, action="append", help="only these rows")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.dir, prefix="bench-data-") as name:
        here = Path(name)
        make_sources(here, asked.mib)
        print(f"{os.cpu_count()} processors, {os.getloadavg()[0]:.1f} of them wanted by others", flush=True)
        rounds = [one_round(here, asked.only or list(ROWS), number) for number in range(asked.rounds)]
    return report(rounds, asked.mib)


def one_round(here: Path, rows: list[str], number: int) -> dict[str, tuple[Taken, Taken]]:
    """What the tools took and what we took, for each row. Who comes first changes from round to round."""
    pairs = {}
    for row in rows:
        floor, ours = ROWS[row]
        if number % 2:
            second, first = timed(ours, here), timed(floor, here)
        else:
            first, second = timed(floor, here), timed(ours, here)
        pairs[row] = (first, second)
    return pairs


def timed(command: str, here: Path) -> Taken:
    os.sync()
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, shell=True, check=True, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    for made in ("ours", "floor"):
        shutil.rmtree(here / made, ignore_errors=True)
    for piece in here.glob("pieces*"):
        piece.unlink()
    return Taken(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def make_sources(here: Path, mib: int) -> None:
    draw = random.Random(1)
    block = b"".join(b"%d\t" % draw.randrange(10**9) + b"x" * draw.randrange(20, 140) + b"\n" for _ in range(100_000))
    with (here / "train.txt").open("wb") as file:
        while file.tell() < mib << 20:
            file.write(block)
    for directory, count, size in (("files", 64, (mib << 20) // 64), ("small", 2000, 64 << 10)):
        (here / directory).mkdir()
        for number in range(count):
            content = block * (size // len(block) + 1)
            (here / directory / f"{number:04}").write_bytes(content[:size])


def report(rounds: list[dict[str, tuple[Taken, Taken]]], mib: int) -> int:
    print(
        f"{len(rounds)} rounds of {mib} MiB in {PARTS} parts; medians of seconds (of them on a processor) and of ratios"
    )
    ratios = {}
    for row in rounds[0]:
        floor, ours = zip(*(pairs[row] for pairs in rounds), strict=True)
        each = sorted(one.seconds / other.seconds for one, other in zip(ours, floor, strict=True))
        ratios[row] = median(each)
        print(
            f"{row:19} {ROWS[row][0].partition(' ')[0]:5} {middle(floor)}  pdj {middle(ours)}  ratio {ratios[row]:.2f}",
            end="",
        )
        print(f"  ({' '.join(f'{ratio:.2f}' for ratio in each)})")
    lines = ratios.get("split --by lines", 0)
    print(f"split --by lines against split and cp: {lines:.2f}; the aim is at most {AIM}")
    return 0 if lines <= AIM else 1


def middle(taken: Sequence[Taken]) -> str:
    return f"{median(one.seconds for one in taken):5.2f} s ({median(one.processor for one in taken):.2f})"


if __name__ == "__main__":
    sys.exit(main())
