"""A pod's processes: their output, their exit codes, their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch.output import LaunchError
from paddlejob.launch.processes import Command, Process, stop


def start(script: str, log: Path, events: SimpleQueue[Any]) -> Process:
    return Process(Command([sys.executable, "-c", script], {}), Path("/"), log, events.put)


def test_lines_go_to_the_log_and_to_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    events: SimpleQueue[Any] = SimpleQueue()
    start("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", tmp_path / "a" / "x.log", events)
    assert events.get(timeout=30) == 3
    assert sorted((tmp_path / "a" / "x.log").read_text().split()) == ["err", "out"]


def test_a_log_that_cannot_be_written_does_not_end_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").touch()
    events: SimpleQueue[Any] = SimpleQueue()
    start("print('x' * 100000)", tmp_path / "file" / "x.log", events)
    assert events.get(timeout=30) == 0
    assert "cannot write" in capsys.readouterr().out


def test_a_log_on_a_full_volume_does_not_end_training_and_is_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "x.log").symlink_to("/dev/full")
    events: SimpleQueue[Any] = SimpleQueue()
    start("for number in range(1000): print(number)", tmp_path / "x.log", events)
    assert events.get(timeout=30) == 0
    assert capsys.readouterr().out.count("cannot write any more (No space left on device)") == 1


def test_a_process_keeps_running_when_standard_output_is_closed(tmp_path: Path):
    """The log file still gets every line."""
    read, write = os.pipe()
    os.close(read)
    script = "from tests.unit.launch.test_processes import run_one; run_one()"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "x.log")], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.stderr == b""
    assert (tmp_path / "x.log").read_text().count("line") == 20000


def run_one() -> None:
    events: SimpleQueue[Any] = SimpleQueue()
    start("for number in range(20000): print('line', number)", Path(sys.argv[1]), events)
    status = events.get(timeout=60)
    os._exit(status)


def test_a_process_killed_by_a_signal_has_the_exit_code_of_a_shell(tmp_path: Path):
    events: SimpleQueue[Any] = SimpleQueue()
    start("import os; os.kill(os.getpid(), 9)", tmp_path / "x.log", events)
    assert events.get(timeout=30) == 137


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.launch.processes.GRACE_SECONDS", 0.5)
    events: SimpleQueue[Any] = SimpleQueue()
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    process = start(script, tmp_path / "x.log", events)
    while "deaf" not in ((tmp_path / "x.log").read_text() if (tmp_path / "x.log").exists() else ""):
        assert events.empty()
        time.sleep(0.05)
    stop([process])
    assert events.get(timeout=30) == 137


def test_a_grandchild_that_keeps_the_pipe_open_does_not_keep_the_pod(tmp_path: Path):
    events: SimpleQueue[Any] = SimpleQueue()
    script = "import subprocess; subprocess.Popen(['sleep', '20'])"
    Process(Command([sys.executable, "-c", script], {"PATH": "/usr/bin:/bin"}), Path("/"), tmp_path / "x", events.put)
    assert events.get(timeout=15) == 0


def test_a_missing_program_is_named(tmp_path: Path):
    with pytest.raises(LaunchError, match="cannot start /nowhere: No such file") as error:
        Process(Command(["/nowhere"], {}), tmp_path, tmp_path / "x.log", lambda status: None)
    assert error.value.exit_code == 127
