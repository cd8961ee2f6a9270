"""Small JSON files that several processes read and write: replaced as a whole, and writable on a full disk."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
PADDED_SIZE = 16 * 1024
"""A padded file has at least this size, so that it can be overwritten in place when the disk is full."""


def write_json(path: Path, content: Any, *, padded: bool = False) -> None:
    encoded = json.dumps(content, ensure_ascii=False).encode()
    if padded:
        encoded = encoded.ljust(PADDED_SIZE) + b"\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(encoded)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno not in DISK_FULL or not padded:
            raise
        _overwrite(path, encoded)


def _overwrite(path: Path, encoded: bytes) -> None:
    with path.open("r+b") as file:
        file.write(encoded)


def read_json(path: Path) -> Any:
    """The content, or None if there is no such file."""
    for attempt in range(20):
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except json.JSONDecodeError:
            # It is being overwritten in place.
            if attempt == 19:
                raise
            time.sleep(0.01)
    return None
