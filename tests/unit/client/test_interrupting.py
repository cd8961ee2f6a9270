"""Interrupting a job that `run` started: its engine has time to save, and is killed if it does not stop."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import paddlejob as pj
from paddlejob.client import handle
from paddlejob.local.runner import INTERRUPT, KILL, AttachedRunner
from paddlejob.local.state.store import JobStore
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget

IGNORES_INTERRUPTS = "import os\nwhile (got := os.read(0, 1)) not in (b'', b'!'): os.write(1, got)\nos.write(1, got)"
STOPS = "import os; os.write(1, os.read(0, 1)); os.write(1, b' saved')"


class Engine:
    """A process that gets the commands of a handle as an engine does, and prints what it got."""

    def __init__(self, program: str, state: Path) -> None:
        commands, pipe = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=commands, stdout=subprocess.PIPE, start_new_session=True
        )
        os.close(commands)
        self.run = pj.Run(
            SyncTarget(LocalTarget(JobStore(state))), "default", "mnist", AttachedRunner(self.process.pid, pipe)
        )

    def output(self) -> bytes:
        """What it printed, once it has ended."""
        return self.process.communicate()[0]


@contextmanager
def engine(program: str, state: Path) -> Iterator[Engine]:
    made = Engine(program, state)
    try:
        yield made
    finally:
        made.process.kill()


def test_an_engine_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handle, "GRACE", 0.1)
    with engine(IGNORES_INTERRUPTS, tmp_path) as stubborn:
        stubborn.run.interrupt()
        assert stubborn.output() == INTERRUPT + KILL


def test_a_killed_engine_is_waited_for_so_that_the_job_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handle, "GRACE", 0.1)
    with engine(f"{IGNORES_INTERRUPTS}\nimport time; time.sleep(0.5)", tmp_path) as slow:
        slow.run.interrupt()
        with pytest.raises(ChildProcessError):
            os.waitpid(slow.process.pid, os.WNOHANG)


def test_an_engine_that_stops_is_waited_for_and_no_longer(tmp_path: Path):
    with engine(STOPS, tmp_path) as obedient:
        obedient.run.interrupt()
        assert obedient.output() == INTERRUPT + b" saved"
