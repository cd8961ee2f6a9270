"""Reading the logs of a job's pods: whole, from near their end, or as they grow, over restarts too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from paddlejob.errors import BadInput
from paddlejob.local.store import JobFolder, at_rest

PIECE = 1 << 20
PAUSE = 0.15


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
    """With more than one log, every line is preceded by the role and index of its pod."""
    reading: dict[Path, _Log] = {}
    while True:
        over = _is_over(folder)
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
        raise BadInput(f"job {folder.key[1]} has no such log; `pdj get {folder.key[1]}` lists its replicas")


def _is_over(folder: JobFolder) -> bool:
    job = folder.job()
    return job is None or at_rest(job) or not folder.hosted


def _chosen(folder: JobFolder, choice: Choice) -> dict[Path, str]:
    attempts = sorted(folder.path.glob("logs/attempt-*"), key=lambda path: int(path.name.partition("-")[2]))
    if choice.attempt:
        attempts = [path for path in attempts if path.name == f"attempt-{choice.attempt}"]
    newest = attempts[-1:]
    found: dict[Path, tuple[str, int]] = {}
    prefix = f"{folder.key[1]}-"
    for path in (log for attempt in newest for log in attempt.glob("*.log")):
        pod, _, container = path.name.removesuffix(".log").removeprefix(prefix).partition(".")
        role, _, index = pod.rpartition("-")
        if container == choice.container and choice.role in ("", role) and choice.index in (None, int(index)):
            found[path] = (role, int(index))
    return {path: f"{role}-{index}" for path, (role, index) in sorted(found.items(), key=lambda item: item[1])}


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
        """A last line that was never ended."""
        left, self._unfinished = self._unfinished, b""
        return b"[%s] %s\n" % (self._title, left) if left and prefixed else b""

    def _marked(self, piece: bytes) -> bytes:
        *lines, self._unfinished = (self._unfinished + piece).split(b"\n")
        return b"".join(b"[%s] %s\n" % (self._title, line) for line in lines)


def _start_of_tail(path: Path, lines: int) -> int:
    """Where the last so many lines begin, read from the end."""
    with path.open("rb") as file:
        place = file.seek(0, 2)
        left = lines + 1
        while place > 0:
            step = min(place, 64 * 1024)
            place -= step
            file.seek(place)
            block = file.read(step)
            count = block.count(b"\n")
            if count >= left:
                for _ in range(left):
                    cut = block.rfind(b"\n")
                    block = block[:cut]
                return place + cut + 1
            left -= count
        return 0
