"""How fast `pdj data split` is against `split` and `cp`, in one run: python -P bench/data.py.

All three are timed until their output is on disk (`sync FILE...` after the two tools, fsync in ours), in
turn, for a number of rounds; the best of each counts. Ours also counts exactly and makes checksums, which they
do not. The aim is at most 1.3 times `split -n l/N` and `cp` of its parts into place.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARTS = 4
AIM = 1.3


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mib", type=int, default=1024)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--dir", help="where to work; a temporary directory by default")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.dir, prefix="bench-data-") as name:
        here = Path(name)
        source = make_lines(here / "train.txt", asked.mib << 20)
        best = {"split": 1e9, "cp": 1e9, "pdj": 1e9, "pdj bytes": 1e9, "pdj stage": 1e9}
        for _ in range(asked.rounds):
            for what, seconds in one_round(here, source).items():
                best[what] = min(best[what], seconds)
    report(best, asked.mib)
    return 0 if best["pdj"] <= AIM * (best["split"] + best["cp"]) else 1


def one_round(here: Path, source: Path) -> dict[str, float]:
    pieces, placed = here / "pieces", here / "placed"
    pieces.mkdir()
    placed.mkdir()
    took = {"split": timed(f"split -n l/{PARTS} {source} {pieces}/p && sync {pieces}/*")}
    took["cp"] = timed(f"cp {pieces}/* {placed} && sync {placed}/*")
    shutil.rmtree(pieces)
    shutil.rmtree(placed)
    ours = f"{sys.executable} -c 'import sys; from paddlejob.data import split, stage; {{}}'"
    for what, call in {
        "pdj": f'split("{source}", "{here}/ours", {PARTS})',
        "pdj bytes": f'split("{source}", "{here}/ours", {PARTS}, by="bytes")',
        "pdj stage": f'stage("{source}", "{here}/ours")',
    }.items():
        took[what] = timed(ours.format(call))
        shutil.rmtree(here / "ours")
    return took


def timed(command: str) -> float:
    os.sync()
    start = time.perf_counter()
    subprocess.run(command, shell=True, check=True)
    return time.perf_counter() - start


def make_lines(path: Path, size: int) -> Path:
    draw = random.Random(1)
    block = b"".join(b"%d\t" % draw.randrange(10**9) + b"x" * draw.randrange(20, 140) + b"\n" for _ in range(100_000))
    with path.open("wb") as file:
        for _ in range(-(-size // len(block))):
            file.write(block)
    return path


def report(best: dict[str, float], mib: int) -> None:
    for what, seconds in best.items():
        print(f"{what:10} {seconds:6.2f} s  {mib / seconds:7.0f} MiB/s")
    tools = best["split"] + best["cp"]
    print(f"pdj data split / (split + cp)  {best['pdj'] / tools:.2f}  (aim: at most {AIM})")
    print(f"pdj data split / split         {best['pdj'] / best['split']:.2f}")
    print(f"pdj data split / cp            {best['pdj'] / best['cp']:.2f}")
    print(f"by bytes / cp                  {best['pdj bytes'] / best['cp']:.2f}")
    print(f"pdj data stage / cp            {best['pdj stage'] / best['cp']:.2f}  (stage does not fsync)")


if __name__ == "__main__":
    sys.exit(main())
