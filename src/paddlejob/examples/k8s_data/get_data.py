"""What the image k8s_data does: put data, split evenly, and the quick_start program on a shared volume.

Environment:
    OUT_DIR      the job's directory on the volume: OUT_DIR/<trainer>/data, OUT_DIR/quick_start, OUT_DIR/output
    SPLIT_COUNT  how many parts, one for each trainer
    DATA_URL     where the data comes from: a file, directory or URL; unset: learnable reviews are generated
    SPLIT_BY     lines (default), files or bytes
    SAMPLES      how many reviews are generated (default 6000)
    OVERWRITE    1: replace the parts that an earlier run made in another way
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paddlejob
from paddlejob.data import split
from paddlejob.errors import PaddleJobError

PROGRAM = Path(paddlejob.__file__).parent / "examples" / "quick_start"


def main() -> None:
    out, parts = Path(_needed("OUT_DIR")), _number("SPLIT_COUNT", _needed("SPLIT_COUNT"))
    _warn_off_volume(out)
    try:
        _prepare(out, parts)
    except PaddleJobError as error:
        sys.exit(f"get_data: {error}".replace("pass --overwrite", "set OVERWRITE=1"))
    except OSError as error:
        sys.exit(f"get_data: {out}: cannot be written: {error}")


def _prepare(out: Path, parts: int) -> None:
    by: Any = os.getenv("SPLIT_BY") or "lines"
    with _source(out) as source:
        made = split(source, str(out), parts, by, overwrite=os.getenv("OVERWRITE") == "1")
    for part in made.parts:
        print(f"{out}/{part.part}/data  {part.records} records  {part.bytes} bytes", flush=True)
    shutil.copytree(PROGRAM, out / PROGRAM.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (out / "output").mkdir(exist_ok=True)
    print(f"{out}/{PROGRAM.name} and {out}/output are there", flush=True)


def _needed(name: str) -> str:
    value = os.getenv(name)
    if not value:
        sys.exit(f"{name}: is not set; set it in the Job's env")
    return value


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        sys.exit(f"{name}: is {text}; set it to a whole number, 1 or more")
    return int(text)


@contextmanager
def _source(out: Path) -> Iterator[str]:
    url = os.getenv("DATA_URL")
    if url:
        yield url
        return
    sys.path.insert(0, str(PROGRAM))
    import reviews

    samples = _number("SAMPLES", os.getenv("SAMPLES") or "6000")
    # One name and one time, whenever it runs: then a run that was interrupted goes on.
    file = out / ".reviews" / "reviews.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("w") as lines:
            lines.writelines(reviews.generate(samples))
        os.utime(file, (0, 0))
        yield str(file)
    finally:
        shutil.rmtree(file.parent, ignore_errors=True)


def _warn_off_volume(out: Path) -> None:
    """A document mounts its volume at /mnt and writes to /home/work/mfs, where nothing stays."""
    mounts = _mount_points()
    place = next(path for path in (out.resolve() / "x").parents if str(path) in mounts or str(path) == "/")
    if str(place) == "/" and mounts:
        print(
            f"warning: OUT_DIR {out} lies on no volume, and is lost with its container; "
            "mount the volume at a directory above it",
            flush=True,
        )


def _mount_points() -> set[str]:
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return set()
    return {line.split()[4] for line in lines}


if __name__ == "__main__":
    main()
