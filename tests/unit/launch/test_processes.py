"""A pod's processes: their lines, their status, their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch.processes import Command, Process, stop
from paddlejob.launch.words import LaunchError


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
    assert "cannot be written" in capsys.readouterr().out


def test_a_log_on_a_full_volume_does_not_end_training_and_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "x.log").symlink_to("/dev/full")
    events: SimpleQueue[Any] = SimpleQueue()
    start("for number in range(1000): print(number)", tmp_path / "x.log", events)
    assert events.get(timeout=30) == 0
    assert capsys.readouterr().out.count("cannot be written any more (No space left on device)") == 1


def test_a_process_goes_on_when_nobody_reads_what_it_says(tmp_path: Path):
    """As with `kubectl logs`, whose other end may be gone: the log file still gets every line."""
    read, write = os.pipe()
    os.close(read)
    words = "from tests.unit.launch.test_processes import run_one; run_one()"
    done = subprocess.run(
        [sys.executable, "-c", words, str(tmp_path / "x.log")], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.stderr == b""
    assert (tmp_path / "x.log").read_text().count("line") == 20000


def run_one() -> None:
    events: SimpleQueue[Any] = SimpleQueue()
    start("for number in range(20000): print('line', number)", Path(sys.argv[1]), events)
    status = events.get(timeout=60)
    os._exit(status)


def test_a_process_that_ends_by_a_signal_has_a_shells_status(tmp_path: Path):
    events: SimpleQueue[Any] = SimpleQueue()
    start("import os; os.kill(os.getpid(), 9)", tmp_path / "x.log", events)
    assert events.get(timeout=30) == 137


def test_a_process_that_does_not_heed_the_first_word_is_made_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("paddlejob.launch.processes.GRACE_SECONDS", 0.5)
    events: SimpleQueue[Any] = SimpleQueue()
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    process = start(script, tmp_path / "x.log", events)
    while "deaf" not in ((tmp_path / "x.log").read_text() if (tmp_path / "x.log").exists() else ""):
        assert events.empty()
        time.sleep(0.05)
    stop([process])
    assert events.get(timeout=30) == 137


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_the_pod(tmp_path: Path):
    events: SimpleQueue[Any] = SimpleQueue()
    script = "import subprocess; subprocess.Popen(['sleep', '20'])"
    Process(Command([sys.executable, "-c", script], {"PATH": "/usr/bin:/bin"}), Path("/"), tmp_path / "x", events.put)
    assert events.get(timeout=15) == 0


def test_a_program_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(LaunchError, match="/nowhere does not start: No such file") as told:
        Process(Command(["/nowhere"], {}), tmp_path, tmp_path / "x.log", lambda status: None)
    assert told.value.status == 127
