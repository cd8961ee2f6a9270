"""The child processes of a pod: their output goes to a log file and to standard output."""

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

from paddlejob.launch.output import LaunchError, log

GRACE_SECONDS = 10.0
MAX_CHUNK_BYTES = 1 << 16
EXIT_CANNOT_START = 127


class Command(NamedTuple):
    argv: list[str]
    environ: dict[str, str]


class Process:
    """One child. It stays in the launcher's process group, so that a signal to the group reaches it."""

    def __init__(self, command: Command, directory: Path, log_file: Path, on_exit: Callable[[int], None]) -> None:
        try:
            self._child = subprocess.Popen(
                command.argv,
                env=command.environ,
                cwd=str(directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise LaunchError(f"cannot start {command.argv[0]}: {error.strerror}", EXIT_CANNOT_START) from None
        self._copier = threading.Thread(target=self._copy_output, args=(log_file,), daemon=True)
        self._copier.start()
        threading.Thread(target=self._wait, args=(on_exit,), daemon=True).start()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def wait_or_kill(self, deadline: float) -> None:
        """Wait for the exit until the deadline, then kill the process."""
        try:
            self._child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._copier.join(1)

    def _copy_output(self, log_file: Path) -> None:
        assert self._child.stdout
        lines, file = self._child.stdout, _open_log(log_file)
        for line in iter(lambda: lines.readline(MAX_CHUNK_BYTES), b""):
            # If standard output is closed, keep reading: the child would block on a full pipe.
            with contextlib.suppress(OSError):
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
            file = _write_log(file, line, log_file)
        if file:
            file.close()

    def _wait(self, on_exit: Callable[[int], None]) -> None:
        status = self._child.wait()
        # A grandchild may keep the pipe open indefinitely.
        self._copier.join(5)
        on_exit(status if status >= 0 else 128 - status)


def stop(processes: Sequence[Process]) -> None:
    """Terminate all processes, and kill those that are still running after the grace period."""
    for process in processes:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        process.wait_or_kill(deadline)


def _open_log(path: Path) -> IO[bytes] | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab", buffering=0)
    except OSError as error:
        log(f"{path}: cannot write ({error.strerror}); logging only to standard output")
        return None


def _write_log(file: IO[bytes] | None, line: bytes, path: Path) -> IO[bytes] | None:
    """Returns None once the file cannot be written; training continues without it."""
    try:
        if file:
            file.write(line)
        return file
    except OSError as error:
        log(f"{path}: cannot write any more ({error.strerror}); logging only to standard output")
        return None
