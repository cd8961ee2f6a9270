"""Temporary directories of one run; those of killed runs are removed."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "paddlejob-testbed-"
_DAY_SECONDS = 24 * 3600


class Scratch:
    """A new directory below TMPDIR."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove directories of runs that ended more than a day ago without cleaning up."""
    for old in parent.glob(f"{_PREFIX}*/lock"):
        if time.time() - old.stat().st_mtime > _DAY_SECONDS and not _held(old):
            shutil.rmtree(old.parent, ignore_errors=True)


def _held(file: Path) -> bool:
    with file.open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
