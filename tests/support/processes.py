"""Processes that tests look for: whether one still runs, and the supervisor."""

from __future__ import annotations

import os
from pathlib import Path

from paddlejob.local.sandbox.proc import parents


def is_alive(pid: int) -> bool:
    """Report whether the process runs. One that has exited but was not collected by its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(") ")[2][0] != "Z"


def supervisor() -> int:
    """The one that an engine in this process has started."""
    (found,) = (pid for pid, parent in parents().items() if parent == os.getpid() and b"supervisor" in _command(pid))
    return found


def _command(pid: int) -> bytes:
    return Path("/proc", str(pid), "cmdline").read_bytes()
