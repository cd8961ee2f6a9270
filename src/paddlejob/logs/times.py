"""How large each log was at which time: log files have no times, and `pdj logs --since` needs them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

EVERY = 10.0
"""Seconds between two records of a log; a week of output is about 1 MB of records."""


class LogTimes:
    """Records the sizes of the logs of running jobs, by the directories of the jobs."""

    def __init__(self) -> None:
        self._next: dict[Path, float] = {}
        self._sizes: dict[Path, int] = {}

    def record(self, job: Path, now: float) -> None:
        """Called often; only logs that have grown get a record. A full disk is reported by the job itself."""
        if now < self._next.get(job, 0.0):
            return
        self._next[job] = now + EVERY
        with suppress(OSError):
            for log in job.glob("logs/attempt-*/*.log"):
                size = log.stat().st_size
                if self._sizes.get(log) != size:
                    self._sizes[log] = size
                    with _times(log).open("a") as file:
                        file.write(f"{now:.0f} {size}\n")

    def forget(self, job: Path) -> None:
        self._next.pop(job, None)
        self._sizes = {log: size for log, size in self._sizes.items() if job not in log.parents}


def size_at(log: Path, moment: float) -> int:
    """How many bytes the log had then; up to EVERY seconds too few."""
    try:
        if log.stat().st_mtime < moment:
            return log.stat().st_size
        records = _times(log).read_text().splitlines()
    except OSError:
        return 0
    size = 0
    for record in records:
        time, _, recorded = record.partition(" ")
        if not time.isdecimal() or not recorded.isdecimal() or int(time) > moment:
            break
        size = int(recorded)
    return size


def _times(log: Path) -> Path:
    return log.with_name(f"{log.name}.times")
