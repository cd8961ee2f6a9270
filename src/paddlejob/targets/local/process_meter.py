"""What the processes of a replica use, by /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from paddlejob.targets.views import Usage

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
UTIME, STIME, RSS = 11, 12, 21
"""Fields of /proc/PID/stat after the name of the program, which may contain spaces."""
SHORTEST = 0.5
"""Seconds between two readings; below, the ticks of the kernel (10 ms) make the difference imprecise."""


class ProcessMeter:
    """CPU use is the difference of two readings, so the last one of each process is kept."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float, float | None]] = {}

    def read(self, pid: int) -> Usage | None:
        """The process and all its descendants; None if it has ended."""
        readings = [reading for one in (pid, *descendants(pid)) if (reading := cpu_and_memory(one))]
        if not readings:
            self._last.pop(pid, None)
            return None
        now, seconds = time.monotonic(), sum(cpu for cpu, _ in readings)
        before, seconds_before, cpu = self._last.get(pid, (0.0, 0.0, None))
        if not before:
            self._last[pid] = (now, seconds, None)
        elif now - before >= SHORTEST:
            cpu = max(0.0, seconds - seconds_before) / (now - before)
            self._last[pid] = (now, seconds, cpu)
        return Usage(cpu, sum(memory for _, memory in readings))


def descendants(pid: int) -> Iterator[int]:
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
            yield from descendants(child)


def cpu_and_memory(pid: int) -> tuple[float, int] | None:
    """Seconds of CPU time and bytes of memory."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except OSError:
        return None
    return (int(fields[UTIME]) + int(fields[STIME])) / TICKS, int(fields[RSS]) * PAGE
