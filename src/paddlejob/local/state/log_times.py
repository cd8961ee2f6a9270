"""How large each log was at which time: log files have no times, and `pdj logs --since` needs them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from paddlejob.local.state.store import JobFolder

EVERY = 10.0
"""Seconds between two records of a log; a week of output is about 1 MB of records."""


class LogTimes:
    """Records the sizes of the logs of running jobs."""

    def __init__(self) -> None:
        self._next: dict[JobFolder, float] = {}
        self._sizes: dict[Path, int] = {}

    def record(self, folder: JobFolder, now: float) -> None:
        """Called often; only logs that have grown get a record. A full disk is reported by the job itself."""
        if now < self._next.get(folder, 0.0):
            return
        self._next[folder] = now + EVERY
        with suppress(OSError):
            for log in folder.path.glob("logs/attempt-*/*.log"):
                size = log.stat().st_size
                if self._sizes.get(log) != size:
                    self._sizes[log] = size
                    with _times(log).open("a") as file:
                        file.write(f"{now:.0f} {size}\n")

    def forget(self, folder: JobFolder) -> None:
        self._next.pop(folder, None)
        self._sizes = {log: size for log, size in self._sizes.items() if folder.path not in log.parents}


def offset_at(log: Path, moment: float) -> int:
    """Where a reader starts who wants what was written since then; up to EVERY seconds more, and whole lines."""
    try:
        if log.stat().st_mtime < moment:
            return log.stat().st_size
        records = _times(log).read_text().splitlines()
    except OSError:
        return 0
    offset = 0
    for record in records:
        time, _, size = record.partition(" ")
        if not time.isdecimal() or not size.isdecimal() or int(time) > moment:
            break
        offset = int(size)
    return _start_of_line(log, offset)


def _times(log: Path) -> Path:
    return log.with_name(f"{log.name}.times")


def _start_of_line(log: Path, offset: int) -> int:
    with log.open("rb") as file:
        while offset > 0:
            step = min(offset, 64 * 1024)
            file.seek(offset - step)
            found = file.read(step).rfind(b"\n")
            if found >= 0:
                return offset - step + found + 1
            offset -= step
    return 0
