"""The last lines of a file that may be large."""

from __future__ import annotations

import re
from pathlib import Path

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def last_lines(path: Path, count: int, most_bytes: int = 8192) -> list[str]:
    """Without control characters: they would move the cursor of whoever prints them."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = [CONTROL.sub("", line.rpartition("\r")[2]).rstrip() for line in text.rstrip("\r\n").split("\n")]
    return [line for line in lines if line][-count:]
