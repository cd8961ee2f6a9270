"""The server and the trainer of a pod: what they write goes to a log file and to standard output."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from paddlejob.launch.words import LaunchError, say

GRACE_SECONDS = 10.0
LONGEST_PIECE = 1 << 16
CANNOT_START = 127


class Command(NamedTuple):
    words: list[str]
    environ: dict[str, str]


class Process:
    """One child. It stays in the launcher's process group, so that whoever ends the group ends all of it."""

    def __init__(self, command: Command, directory: Path, log: Path, ended: Callable[[int], None]) -> None:
        try:
            self._child = subprocess.Popen(
                command.words,
                env=command.environ,
                cwd=str(directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise LaunchError(f"{command.words[0]} does not start: {error.strerror}", CANNOT_START) from None
        self._copier = threading.Thread(target=self._copy, args=(log,), daemon=True)
        self._copier.start()
        threading.Thread(target=self._wait, args=(ended,), daemon=True).start()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def end_by(self, moment: float) -> None:
        """Wait for its end until then, and make it end if it has not."""
        try:
            self._child.wait(max(0.0, moment - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._copier.join(1)

    def _copy(self, log: Path) -> None:
        assert self._child.stdout
        lines, file = self._child.stdout, _opened(log)
        for line in iter(lambda: lines.readline(LONGEST_PIECE), b""):
            # A reader of standard output that is gone must not stop the child, which would wait for ever.
            with contextlib.suppress(OSError):
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
            file = _written(file, line, log)
        if file:
            file.close()

    def _wait(self, ended: Callable[[int], None]) -> None:
        status = self._child.wait()
        # A grandchild may keep the pipe open for ever.
        self._copier.join(5)
        ended(status if status >= 0 else 128 - status)


def stop(processes: Sequence[Process]) -> None:
    """Ask all of them to end, and make them after a while."""
    for process in processes:
        process.signal(signal.SIGTERM)
    moment = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.end_by(moment)


def _opened(log: Path) -> IO[bytes] | None:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab", buffering=0)
    except OSError as error:
        say(f"{log}: cannot be written ({error.strerror}); its lines are only here")
        return None


def _written(file: IO[bytes] | None, line: bytes, log: Path) -> IO[bytes] | None:
    """Training does not end because its log cannot be written."""
    try:
        if file:
            file.write(line)
        return file
    except OSError as error:
        say(f"{log}: cannot be written any more ({error.strerror}); its lines are only here")
        return None
