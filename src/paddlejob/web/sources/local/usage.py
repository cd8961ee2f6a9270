"""What the processes of a replica use, as /proc tells it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from paddlejob.web.views.machine import Usage

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
UTIME, STIME, RSS = 11, 12, 21
"""Fields of /proc/PID/stat after the name of the program, which may contain spaces."""


class ProcessMeter:
    """CPU use is the difference of two readings, so the last one of each process is kept."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}

    def read(self, pid: int) -> Usage | None:
        """The process and all its descendants; None if it has ended."""
        readings = [reading for one in (pid, *_descendants(pid)) if (reading := _reading(one))]
        if not readings:
            self._last.pop(pid, None)
            return None
        now, seconds = time.monotonic(), sum(cpu for cpu, _ in readings)
        before = self._last.get(pid)
        if before is None or now - before[0] >= 0.5:
            self._last[pid] = (now, seconds)
        cpu = max(0.0, seconds - before[1]) / (now - before[0]) if before and now - before[0] >= 0.5 else None
        return Usage(cpu, sum(memory for _, memory in readings))


def _descendants(pid: int) -> Iterator[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _descendants(child)


def _reading(pid: int) -> tuple[float, int] | None:
    """Seconds of CPU time and bytes of memory."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return (int(fields[UTIME]) + int(fields[STIME])) / TICKS, int(fields[RSS]) * PAGE
