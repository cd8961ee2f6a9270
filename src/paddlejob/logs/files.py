"""The log files of a job on this machine: logs/attempt-N/JOB-ROLE-INDEX[.CONTAINER].log in the job's directory."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlejob.logs.line import on_screen
from paddlejob.logs.selection import LogSelection
from paddlejob.logs.times import size_at
from paddlejob.redaction import without_environment

BLOCK = 1 << 20
TAIL_BYTES = 2048
KEPT_ATTEMPTS = 10
"""Attempts of a job whose logs are kept: one that restarts for weeks must not fill the disk."""


def append_lines(path: Path, lines: bytes) -> int:
    """Add whole lines to a file whose last one may have been cut by a crash; returns its size."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else b"\n" + lines
        file.write(lines)
        return file.tell()


@dataclass(frozen=True, order=True)
class LogFile:
    attempt: int
    role: str
    index: int
    container: str
    """Empty for the container that trains."""
    path: Path
    size: int

    @property
    def replica(self) -> str:
        return f"{self.role}-{self.index}"


def find_logs(job: Path, name: str, attempt: int | None = None) -> list[LogFile]:
    """By attempt, role and index; of one attempt only, where 0 stands for the latest."""
    attempts = _attempts(job)
    chosen = attempts if attempt is None else [attempt or max(attempts, default=0)]
    return sorted(log for one in chosen if one in attempts for log in _logs_in(attempts[one], one, f"{name}-"))


def select_logs(job: Path, name: str, selection: LogSelection) -> list[LogFile]:
    found = find_logs(job, name, selection.attempt)
    return [log for log in found if log.container == selection.container and selection.selects(log.role, log.index)]


def first_worker_logs(job: Path, name: str) -> list[LogFile]:
    """Of the worker with the lowest index, by attempt. An elastic job may run without index 0."""
    found: dict[int, LogFile] = {}
    for log in find_logs(job, name):
        if log.role == "worker" and not log.container:
            found.setdefault(log.attempt, log)
    return list(found.values())


def prune_logs(job: Path, attempt: int) -> None:
    """Remove the logs of attempts that are too old, when this one begins."""
    for number, path in _attempts(job).items():
        if number <= attempt - KEPT_ATTEMPTS:
            shutil.rmtree(path, ignore_errors=True)


def start_of(log: Path, selection: LogSelection) -> int:
    """The offset at which the selected lines begin."""
    start = 0 if selection.since is None else _after_newline(log, size_at(log, selection.since), 1)
    if selection.tail < 0:
        return start
    return _start_of_matches(log, start, selection) if selection.pattern else max(start, _start_of_tail(log, selection))


def blocks_of(log: Path) -> Iterator[bytes]:
    with log.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def last_lines(log: Path, count: int, max_bytes: int = 8192, without_noise: bool = False) -> list[str]:
    """The last lines of a log that may be large, as a terminal can show them."""
    return on_screen(_end_of(log, max_bytes).rstrip(b"\r\n").split(b"\n"), count, without_noise)


def log_tail(log: Path) -> str:
    """The end of a log, from the beginning of a line."""
    end = _end_of(log, TAIL_BYTES + 1)
    whole = end[1:].partition(b"\n")[2] or end[1:] if len(end) > TAIL_BYTES else end
    return without_environment(whole.decode(errors="replace").strip())


def _attempts(job: Path) -> dict[int, Path]:
    """The directories with the logs of each attempt."""
    found = ((entry.name.partition("-"), entry.path) for entry in _entries(job / "logs"))
    return {int(number): Path(path) for (kind, _, number), path in found if kind == "attempt" and number.isdecimal()}


def _logs_in(directory: Path, attempt: int, prefix: str) -> Iterator[LogFile]:
    for entry in _entries(directory):
        pod, _, container = entry.name.removesuffix(".log").removeprefix(prefix).partition(".")
        role, _, index = pod.rpartition("-")
        if entry.name.endswith(".log") and index.isdecimal() and entry.is_file(follow_symlinks=False):
            yield LogFile(attempt, role, int(index), container, Path(entry.path), entry.stat().st_size)


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _start_of_matches(log: Path, start: int, selection: LogSelection) -> int:
    """The offset of the last lines that match."""
    found: deque[int] = deque(maxlen=selection.tail)
    with log.open("rb") as file:
        offset = file.seek(start)
        while line := file.readline(BLOCK):
            if selection.matches(line):
                found.append(offset)
            offset += len(line)
    return found[0] if found else offset


def _start_of_tail(log: Path, selection: LogSelection) -> int:
    """The last line may lack its newline."""
    size = log.stat().st_size
    ended = _end_of(log, 1) == b"\n"
    return _after_newline(log, size, selection.tail + ended) if selection.tail else size


def _after_newline(log: Path, end: int, count: int) -> int:
    """The offset after a newline, counted backwards from `end`; 0 if there are fewer."""
    with log.open("rb") as file:
        while end > 0:
            step = min(end, 64 * 1024)
            file.seek(end - step)
            block = file.read(step)
            found = block.count(b"\n")
            if found >= count:
                return end - step + len(block.rsplit(b"\n", count)[0]) + 1
            count, end = count - found, end - step
    return 0


def _end_of(log: Path, most: int) -> bytes:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read()
    except OSError:
        return b""
