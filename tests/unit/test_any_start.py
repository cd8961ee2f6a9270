"""The tests pass however they are started: in the background, under nohup, with a TMPDIR of any length."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import Manager
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASK = "import signal; print(*(signal.getsignal(number).name for number in (signal.SIGHUP, signal.SIGTERM)))"


def test_a_program_that_a_test_starts_can_be_interrupted():
    sleeping = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=-1, stdout=-1, stderr=-1)
    assert sleeping.stdout
    sleeping.stdout.readline()
    sleeping.send_signal(signal.SIGINT)
    sleeping.communicate(timeout=30)
    assert sleeping.returncode == -signal.SIGINT
    answer = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout
    assert answer.split() == ["SIG_DFL", "SIG_DFL"]


def test_a_program_can_open_sockets_in_the_temporary_directory():
    with Manager() as manager:
        assert manager.list([1])[0] == 1


def test_the_same_holds_in_the_background_under_nohup_and_with_a_long_tmpdir(tmp_path: Path):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    inner = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", __file__, "-k", "a_program"]
    done = subprocess.run(
        ["bash", "-c", "trap '' INT HUP; exec \"$@\"", "bash", *inner],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(deep)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
