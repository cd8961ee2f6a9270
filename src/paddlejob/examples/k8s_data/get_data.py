"""The program of the image k8s_data: writes evenly split data and the quick_start program to a shared volume.

Environment:
    OUT_DIR      the job's directory on the volume: OUT_DIR/<trainer>/data, OUT_DIR/quick_start, OUT_DIR/output
    SPLIT_COUNT  the number of parts, one per trainer
    DATA_URL     the source of the data: a file, directory or URL (default: generate reviews)
    SPLIT_BY     lines (default), files or bytes
    SAMPLES      the number of reviews to generate (default 6000)
    OVERWRITE    1: replace the parts of an earlier run with other settings
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

EXAMPLES = Path(paddlejob.__file__).parent / "examples"
PROGRAM = EXAMPLES / "quick_start"
SHARED_MODULE = EXAMPLES / "wide_and_deep" / "process.py"
"""The quick_start program imports it, too."""


def main() -> None:
    out, parts = Path(_required("OUT_DIR")), _number("SPLIT_COUNT", _required("SPLIT_COUNT"))
    warn_without_volume(out)
    try:
        _prepare(out, parts)
    except PaddleJobError as error:
        sys.exit(f"get_data: {error}".replace("pass --overwrite", "set OVERWRITE=1"))
    except OSError as error:
        sys.exit(f"get_data: {out}: cannot write: {error}")


def _prepare(out: Path, parts: int) -> None:
    by: Any = os.getenv("SPLIT_BY") or "lines"
    with _source(out) as source:
        manifest = split(source, str(out), parts, by, overwrite=os.getenv("OVERWRITE") == "1")
    for part in manifest.parts:
        print(f"{out}/{part.part}/data  {part.records} records  {part.bytes} bytes", flush=True)
    shutil.copytree(PROGRAM, out / PROGRAM.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SHARED_MODULE, out / PROGRAM.name)
    (out / "output").mkdir(exist_ok=True)
    print(f"created {out}/{PROGRAM.name} and {out}/output", flush=True)


def _required(name: str) -> str:
    value = os.getenv(name)
    if not value:
        sys.exit(f"{name}: not set; set it in the Job's env")
    return value


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        sys.exit(f"{name}: {text} is not valid; set it to a whole number, 1 or more")
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
    # Always the same name and modification time, so that an interrupted run can resume.
    file = out / ".reviews" / "reviews.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("w") as lines:
            lines.writelines(reviews.generate(samples))
        os.utime(file, (0, 0))
        yield str(file)
    finally:
        shutil.rmtree(file.parent, ignore_errors=True)


def warn_without_volume(out: Path) -> None:
    """One document mounts its volume at /mnt but writes to /home/work/mfs, which is lost with the container."""
    mounts = mount_points()
    mount = next(path for path in (out.resolve() / "x").parents if str(path) in mounts or str(path) == "/")
    if str(mount) == "/" and mounts:
        print(
            f"warning: OUT_DIR {out} is not on a volume and will be lost with the container; "
            "mount the volume at this directory or a parent of it",
            flush=True,
        )


def mount_points() -> set[str]:
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return set()
    return {line.split()[4] for line in lines}


if __name__ == "__main__":
    main()
