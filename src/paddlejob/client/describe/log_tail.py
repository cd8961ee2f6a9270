"""The last lines of a log that may be large."""

from __future__ import annotations

import re
from pathlib import Path

from paddlejob.local.state.logs import without_environment

MAX_LINE_LENGTH = 300
NOISE = re.compile(r"LAUNCH INFO |[IW]\d{4} \d\d:\d\d:\d\d\.\d+ |.*(?:User|Deprecation|Future)Warning: ")
"""Lines of Paddle's launcher and of glog, and warnings of Python."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def last_lines(path: Path, count: int, max_bytes: int = 8192, without_noise: bool = False) -> list[str]:
    """The last lines of a file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - max_bytes))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return readable(text, count, without_noise)


def readable(text: str, count: int, without_noise: bool = False) -> list[str]:
    """The last lines of a text, without control characters: those would move the cursor of the terminal."""
    lines = without_environment(text).rstrip("\r\n").split("\n")
    shown = [CONTROL.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in lines]
    return [_shorten(line) for line in shown if line and not (without_noise and NOISE.match(line))][-count:]


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + " ..."
