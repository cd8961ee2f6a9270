"""A child process with its own log that never outlives this process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paddlejob.errors import NotPossible

# The parent-death signal is tied to the forking thread, so a single thread that lives as long as the process forks.
_forker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="testbed-forker")
# A parent that died before the death signal was asked for sends none.
_IF_PARENT_LIVES = ("sh", "-c", 'test "$PPID" = "$0" && exec "$@"')


class Process:
    """A program that is started and stopped by a test, any number of times."""

    def __init__(self, command: Sequence[str | Path], log: Path, name: str = "", keep_open: Sequence[int] = ()) -> None:
        """`keep_open` are file descriptors that the process inherits."""
        self.command = [str(argument) for argument in command]
        self.name = name or Path(self.command[0]).name
        self.log = log
        self._keep_open = tuple(keep_open)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._running is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._running.pid

    @property
    def alive(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        if not self.alive:
            self._running = _forker.submit(self._spawn).result()

    def stop(self, patience: float = 10.0) -> None:
        """Terminate the process, and kill it if it has not exited after `patience` seconds."""
        if self._running is None or not self.alive:
            return
        self._running.send_signal(signal.SIGCONT)
        self._running.terminate()
        try:
            self._running.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._running is not None and self.alive:
            self._running.kill()
            self._running.wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait_until(self, ready: Callable[[], bool], patience: float = 90.0) -> None:
        """Wait until `ready` is true. If the process exits or takes too long, the error includes its log's end."""
        deadline = time.monotonic() + patience
        while not ready():
            if not self.alive:
                raise NotPossible(f"{self.name} exited before it was ready; {self.log_tail()}")
            if time.monotonic() > deadline:
                raise NotPossible(f"{self.name} was not ready after {patience:.0f} s; {self.log_tail()}")
            time.sleep(0.1)

    def log_tail(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"{self.log} ends with:\n" + "\n".join(text.splitlines()[-20:])

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None and self.alive:
            self._running.send_signal(number)

    def _spawn(self) -> subprocess.Popen[bytes]:
        # setpriv instead of preexec_fn: no Python runs between fork and exec of a process with threads.
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "KILL", "--", *_IF_PARENT_LIVES, str(os.getpid())] if setpriv else []
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*prefix, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=self._keep_open,
                start_new_session=True,
            )
