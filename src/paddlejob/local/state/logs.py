"""The logs of a job's pods: read whole, their tail, or as they grow, also across restarts; old ones are removed."""

from __future__ import annotations

import re
import shutil
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from paddlejob.engine.log_follower import without_environment as without_environment
from paddlejob.errors import BadInput
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.log_times import offset_at
from paddlejob.local.state.store import JobFolder, is_inactive
from paddlejob.plan import names

PIECE = 1 << 20
PAUSE = 0.15
TAIL_BYTES = 2048
BAR_SECONDS = 5.0
"""How often a progress bar is shown among the lines of other replicas: it has no newline until it ends."""
KEPT_ATTEMPTS = 10
"""Attempts of a job whose logs are kept: one that restarts for weeks must not fill the disk."""


class Choice(Protocol):
    @property
    def role(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def container(self) -> str: ...
    @property
    def follow(self) -> bool: ...
    @property
    def tail(self) -> int: ...
    @property
    def since(self) -> float | None: ...
    @property
    def pattern(self) -> re.Pattern[bytes] | None: ...


def follow_logs(folder: JobFolder, choice: Choice) -> Iterator[bytes]:
    """With more than one log, every line is prefixed with the role and index of its pod."""
    reading: dict[Path, _Log] = {}
    while True:
        over = is_over(folder)
        for path, title in _chosen(folder, choice).items():
            if path not in reading:
                reading[path] = _Log(path, title, choice)
        for log in reading.values():
            yield from log.news(prefixed=len(reading) > 1)
        if not choice.follow or over:
            break
        time.sleep(PAUSE)
    for log in reading.values():
        yield log.rest(prefixed=len(reading) > 1)
    if not reading and not choice.follow:
        command = f"pdj get {names.in_command(*folder.key)}"
        raise BadInput(f"job {folder.key[1]} has no such log; list its replicas with `{command}`")


def is_over(folder: JobFolder) -> bool:
    """Whether nothing writes to the logs of the job any more."""
    try:
        job = folder.job()
    except DamagedFile:
        return not folder.has_runner
    return job is None or is_inactive(job) or not folder.has_runner


def _chosen(folder: JobFolder, choice: Choice) -> dict[Path, str]:
    attempts = _attempts(folder)
    newest = [attempts[choice.attempt or max(attempts)]] if choice.attempt in {0, *attempts} and attempts else []
    found: dict[Path, tuple[str, int]] = {}
    prefix = f"{folder.key[1]}-"
    for path in (log for attempt in newest for log in attempt.glob("*.log")):
        pod, _, container = path.name.removesuffix(".log").removeprefix(prefix).partition(".")
        role, _, index = pod.rpartition("-")
        if not index.isdecimal():
            continue
        if container == choice.container and choice.role in ("", role) and choice.index in (None, int(index)):
            found[path] = (role, int(index))
    return {path: f"{role}-{index}" for path, (role, index) in sorted(found.items(), key=lambda item: item[1])}


def prune_logs(folder: JobFolder, attempt: int) -> None:
    """Remove the logs of attempts that are too old, when this one begins."""
    for number, path in _attempts(folder).items():
        if number <= attempt - KEPT_ATTEMPTS:
            shutil.rmtree(path, ignore_errors=True)


def _attempts(folder: JobFolder) -> dict[int, Path]:
    """The directories with the logs of each attempt."""
    found = ((path.name.partition("-")[2], path) for path in folder.path.glob("logs/attempt-*"))
    return {int(number): path for number, path in found if number.isdecimal()}


class _Log:
    def __init__(self, path: Path, title: str, choice: Choice) -> None:
        self._file = path.open("rb")
        self._title = title.encode()
        self._pattern = choice.pattern
        self._unfinished = b""
        self._bar_shown = time.monotonic()
        start = 0 if choice.since is None else offset_at(path, choice.since)
        if choice.tail >= 0 and choice.pattern:
            start = _start_of_matches(path, start, choice.tail, choice.pattern)
        elif choice.tail >= 0:
            start = max(start, _start_of_tail(path, choice.tail))
        self._file.seek(start)

    def news(self, prefixed: bool) -> Iterator[bytes]:
        while piece := self._file.read(PIECE):
            yield self._lines(piece, prefixed) if prefixed or self._pattern else piece
        if b"\r" in self._unfinished and time.monotonic() - self._bar_shown >= BAR_SECONDS:
            self._bar_shown = time.monotonic()
            states, _, self._unfinished = self._unfinished.rpartition(b"\r")
            yield self._shown(states, prefixed)

    def rest(self, prefixed: bool) -> bytes:
        """A last line without a newline."""
        left, self._unfinished = self._unfinished, b""
        return self._shown(left, prefixed) if left else b""

    def _lines(self, piece: bytes, prefixed: bool) -> bytes:
        """The whole lines. One that is longer than a piece is shown in parts, so that it does not fill the memory."""
        *lines, self._unfinished = (self._unfinished + piece).split(b"\n")
        if len(self._unfinished) > PIECE:
            lines.append(self._unfinished)
            self._unfinished = b""
        return b"".join(self._shown(line, prefixed) for line in lines)

    def _shown(self, line: bytes, prefixed: bool) -> bytes:
        if self._pattern and not self._pattern.search(line):
            return b""
        return b"[%s] %s\n" % (self._title, self._state(line)) if prefixed else line + b"\n"

    def _state(self, line: bytes) -> bytes:
        """Of a progress bar, which would overwrite the prefix, the last state, or the last one that matches."""
        states = [state for state in line.split(b"\r") if state.strip()] or [line]
        matching = [state for state in states if self._pattern and self._pattern.search(state)]
        return (matching or states)[-1]


def _start_of_matches(path: Path, start: int, count: int, pattern: re.Pattern[bytes]) -> int:
    """The offset of the last `count` lines that match."""
    found: deque[int] = deque(maxlen=count)
    with path.open("rb") as file:
        offset = file.seek(start)
        while line := file.readline(PIECE):
            if pattern.search(line):
                found.append(offset)
            offset += len(line)
    return found[0] if found else offset


def _start_of_tail(path: Path, lines: int) -> int:
    """The offset at which the last `lines` lines begin, searched from the end; the last one may lack its newline."""
    with path.open("rb") as file:
        offset = file.seek(0, 2)
        if not lines or not offset:
            return offset
        file.seek(offset - 1)
        left = lines + (file.read(1) == b"\n")
        while offset > 0:
            step = min(offset, 64 * 1024)
            offset -= step
            file.seek(offset)
            block = file.read(step)
            count = block.count(b"\n")
            if count >= left:
                for _ in range(left):
                    cut = block.rfind(b"\n")
                    block = block[:cut]
                return offset + cut + 1
            left -= count
        return 0


def log_tail(log: Path) -> str:
    """The end of a log, from the beginning of a line."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read().decode(errors="replace")
    except OSError:
        return ""
    return without_environment((tail.partition("\n")[2] or tail if size > TAIL_BYTES else tail).strip())
