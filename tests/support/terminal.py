"""A command on a terminal of its own, as a user sees it."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0


class Terminal:
    def __init__(self, command: list[str], environment: Mapping[str, str], folder: Path) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command,
            env={**environment, "TERM": "xterm", "LINES": "40", "COLUMNS": "120"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
        )
        os.close(slave)
        self.shown = ""

    def until(self, text: str, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown[-2000:]!r}"
            self._read()

    def press(self, key: bytes) -> None:
        os.write(self.master, key)

    def end(self) -> int:
        """The exit status, once the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-2000:]
            self._read()
        self._read()
        return self.process.returncode

    def _read(self) -> None:
        os.set_blocking(self.master, False)
        try:
            self.shown += os.read(self.master, 65536).decode(errors="replace")
        except (BlockingIOError, OSError):
            time.sleep(0.05)


@contextmanager
def terminal(command: list[str], environment: Mapping[str, str], folder: Path) -> Iterator[Terminal]:
    opened = Terminal(command, environment, folder)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        os.close(opened.master)
