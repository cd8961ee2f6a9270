"""Whether a process still runs."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid: int) -> bool:
    """Report whether the process runs. One that has exited but was not collected by its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(") ")[2][0] != "Z"
