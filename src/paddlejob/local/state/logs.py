"""The logs of a job's pods: read whole, their tail, or as they grow, also across restarts; old ones are removed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from paddlejob.engine.log_follower import without_environment as without_environment
from paddlejob.errors import BadInput
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.store import JobFolder, is_inactive
from paddlejob.plan import names

PIECE = 1 << 20
PAUSE = 0.15
TAIL_BYTES = 2048
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


def follow_logs(folder: JobFolder, choice: Choice) -> Iterator[bytes]:
    """With more than one log, every line is prefixed with the role and index of its pod."""
    reading: dict[Path, _Log] = {}
    while True:
        over = is_over(folder)
        for path, title in _chosen(folder, choice).items():
            if path not in reading:
                reading[path] = _Log(path, title, choice.tail)
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
    def __init__(self, path: Path, title: str, tail: int) -> None:
        self._file = path.open("rb")
        self._title = title.encode()
        self._unfinished = b""
        if tail >= 0:
            self._file.seek(_start_of_tail(path, tail))

    def news(self, prefixed: bool) -> Iterator[bytes]:
        while piece := self._file.read(PIECE):
            yield self._marked(piece) if prefixed else piece

    def rest(self, prefixed: bool) -> bytes:
        """A last line without a newline."""
        left, self._unfinished = self._unfinished, b""
        return b"[%s] %s\n" % (self._title, left) if left and prefixed else b""

    def _marked(self, piece: bytes) -> bytes:
        *lines, self._unfinished = (self._unfinished + piece).split(b"\n")
        return b"".join(b"[%s] %s\n" % (self._title, line) for line in lines)


def _start_of_tail(path: Path, lines: int) -> int:
    """The offset at which the last `lines` lines begin, searched from the end."""
    with path.open("rb") as file:
        offset = file.seek(0, 2)
        left = lines + 1
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
