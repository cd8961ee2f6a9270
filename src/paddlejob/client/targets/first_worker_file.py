"""The log of a job's first worker on this machine, over all attempts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from paddlejob.client.targets.target import LogLine
from paddlejob.errors import BadInput
from paddlejob.local.state.logs import is_over
from paddlejob.local.state.store import JobFolder

PAUSE = 0.5
LINE_LIMIT = 1 << 20
"""Bytes. A longer line is read in parts, so that output without newlines does not fill the memory."""


def read_first_worker(folder: JobFolder, follow: bool) -> Iterator[LogLine]:
    """Log files have no times. Without `follow`, a last line without a newline counts too."""
    open_files: dict[int, BinaryIO] = {}
    try:
        while True:
            over = not follow or is_over(folder)
            for attempt, path in log_files(folder).items():
                if attempt not in open_files:
                    with suppress(FileNotFoundError):  # Logs of old attempts are removed.
                        open_files[attempt] = path.open("rb")
                if attempt in open_files:
                    yield from new_lines(open_files[attempt], attempt, partial=over)
            if over:
                break
            time.sleep(PAUSE)
    finally:
        for file in open_files.values():
            file.close()
    if not open_files and not follow:
        name = folder.key[1]
        raise BadInput(f"no worker of job {name} has written a log yet; look at its replicas with `pdj get {name}`")


def log_files(folder: JobFolder) -> dict[int, Path]:
    """The log of the worker with the lowest index, by attempt. An elastic job may run without index 0."""
    found: dict[int, tuple[int, Path]] = {}
    for path in folder.path.glob(f"logs/attempt-*/{folder.key[1]}-worker-*.log"):
        attempt, index = path.parent.name.partition("-")[2], path.stem.rpartition("-")[2]
        if attempt.isdecimal() and index.isdecimal():
            first = found.get(int(attempt))
            if first is None or int(index) < first[0]:
                found[int(attempt)] = (int(index), path)
    return {attempt: found[attempt][1] for attempt in sorted(found)}


def new_lines(file: BinaryIO, attempt: int, partial: bool) -> Iterator[LogLine]:
    """The lines after the position of the file; `partial` says that a last line without a newline counts.

    Of a progress bar that rewrites itself, what it has shown so far counts, too.
    """
    while line := file.readline(LINE_LIMIT):
        if not line.endswith(b"\n") and len(line) < LINE_LIMIT and not partial:
            shown = line.rfind(b"\r", 0, -1) + 1
            file.seek(shown - len(line), 1)
            if not shown:
                return
            yield LogLine(attempt, line[:shown].decode(errors="replace"))
            return
        yield LogLine(attempt, line.decode(errors="replace"))
