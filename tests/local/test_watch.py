"""`pdj watch`: looking at a job that runs, and going away again."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.pdj import START, Pdj

STEPS = "import time\nfor step in range(1, 6): print(f'step={step}/10 loss={1 / step}', flush=True)\ntime.sleep(300)\n"
PATIENCE = 60.0


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, pdj: Pdj, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        environment = {**pdj.environment, "TERM": "xterm", "LINES": "40", "COLUMNS": "120"}
        self.process = subprocess.Popen(
            [*START, *arguments],
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=pdj.folder,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
        )
        os.close(slave)
        self.shown = ""

    def until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
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
def terminal(pdj: Pdj, *arguments: str) -> Iterator[Terminal]:
    opened = Terminal(pdj, *arguments)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        os.close(opened.master)


def test_a_job_is_watched_and_left_with_q_and_with_ctrl_c(pdj: Pdj):
    assert pdj("run", "-d", pdj.write(command=["python", "-c", STEPS], workers=2)).returncode == 0
    with terminal(pdj, "watch", "job") as screen:
        screen.until("step 5/10, loss 0.2")
        screen.until("▁")
        screen.until("MEMORY")
        screen.press(b"q")
        assert screen.end() == 0
        assert "job keeps training; watch it again with `pdj watch job`" in screen.shown
    with terminal(pdj, "watch", "job") as screen:
        screen.until("50%")
        screen.press(b"\x03")
        assert screen.end() == 130
    assert pdj.status("job").phase == "Running"


def test_without_a_terminal_watching_prints_lines_until_the_end(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sh", "-c", "echo step=1/1 loss=2; sleep 3"]))
    done = pdj("watch", "job")
    assert done.returncode == 0, done.stderr
    assert "job completed in" in done.stdout
    again = pdj("watch", "job")
    assert "job completed in" in again.stdout


def test_watching_a_job_that_fails_says_why(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sh", "-c", "sleep 2; exit 3"], backoffLimit=0))
    done = pdj("watch", "job")
    assert done.returncode == 1
    assert "pdj: job failed: BackoffLimitExceeded" in done.stderr


def test_a_job_that_is_deleted_while_it_is_watched_ends_the_watching(pdj: Pdj):
    pdj("run", "-d", pdj.write(command=["sleep", "300"]))
    pdj.until("job", phase="Running")
    watching = pdj.start("watch", "job")
    assert pdj("delete", "job").returncode == 0
    output, _ = watching.communicate(timeout=PATIENCE)
    assert watching.returncode in (1, 2), output
    assert "was deleted" in output or "not found" in output
