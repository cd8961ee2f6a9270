"""A child process with a log of its own that never outlives us."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paddlejob.errors import NotPossible

# The kernel's parent-death signal follows the thread that forked, so one thread that lives as long as we do forks all.
_forker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="testbed-forker")


class Process:
    """A program that is started and stopped by a test, any number of times."""

    def __init__(self, command: Sequence[str | Path], log: Path, name: str = "", keep_open: Sequence[int] = ()) -> None:
        """`keep_open` are file descriptors that it inherits."""
        self.command = [str(word) for word in command]
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
        """Ask it to end, and kill it if it does not within `patience` seconds."""
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
        """Wait until `ready` is true; say what the log ends with if the process dies or takes too long."""
        deadline = time.monotonic() + patience
        while not ready():
            if not self.alive:
                raise NotPossible(f"{self.name} ended before it was ready; {self.last_words()}")
            if time.monotonic() > deadline:
                raise NotPossible(f"{self.name} was not ready within {patience:.0f} s; {self.last_words()}")
            time.sleep(0.1)

    def last_words(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"its log {self.log} ends:\n" + "\n".join(text.splitlines()[-20:])

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None and self.alive:
            self._running.send_signal(number)

    def _spawn(self) -> subprocess.Popen[bytes]:
        # setpriv instead of preexec_fn: no Python runs between fork and exec of a process with threads.
        setpriv = shutil.which("setpriv")
        leash = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*leash, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=self._keep_open,
                start_new_session=True,
            )
