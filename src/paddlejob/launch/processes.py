"""The server and the trainer of a pod: what they write goes to a log file and to standard output."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

from paddlejob.launch.words import LaunchError, say

GRACE_SECONDS = 10.0
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

    def stop(self) -> None:
        """Ask it to end, and make it after a while."""
        self._child.terminate()
        try:
            self._child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._copier.join(1)

    def _copy(self, log: Path) -> None:
        assert self._child.stdout
        file = _opened(log)
        for line in iter(self._child.stdout.readline, b""):
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
