"""Small JSON files that several processes read and write: replaced as a whole, and writable on a full disk."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from paddlejob.errors import NotPossible

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
PADDED_SIZE = 16 * 1024
"""A padded file has at least this size, so that it can be overwritten in place when the disk is full."""


def encode_json(content: Any) -> bytes:
    """As UTF-8. Text that is none, such as a path or a variable in another encoding, is escaped."""
    try:
        return json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(content).encode()


def write_json(path: Path, content: Any, *, padded: bool = False) -> None:
    encoded = encode_json(content)
    if padded:
        encoded = encoded.ljust(PADDED_SIZE) + b"\n"
    try:
        replace_file(path, encoded)
    except OSError as error:
        if error.errno not in DISK_FULL or not padded:
            raise
        _overwrite(path, encoded)


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file as a whole: readers see the old content or the new one, also after a power failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        temporary.write_bytes(content)
        temporary.chmod(mode)
        _flush(temporary)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _flush(path: Path) -> None:
    """Without this, some file systems store the new name before the content, and leave an empty file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _overwrite(path: Path, encoded: bytes) -> None:
    with path.open("r+b") as file:
        file.write(encoded)
        file.flush()
        os.fsync(file.fileno())


class DamagedFile(NotPossible):
    """A file of the store that is empty, torn or otherwise not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged")
        self.path = path


def read_json(path: Path) -> Any:
    """The content, or None if there is no such file; raises DamagedFile."""
    for _ in range(20):
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            # It may be being overwritten in place.
            time.sleep(0.01)
    raise DamagedFile(path)


def read_if_intact(path: Path) -> Any:
    """The content, or None if there is no such file or it is damaged."""
    try:
        return read_json(path)
    except DamagedFile:
        return None
