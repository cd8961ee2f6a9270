"""What is said about the processes of a pod that hangs, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.local.pod import LocalPod, new_pod
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.stacks import describe_processes
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import NOON, Role, job

SLEEPS = f"{sys.executable} -c 'import time; time.sleep(100)' & wait"


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[LocalPod]:
    """A pod whose container has a shell as its first process, and a Python program below it."""
    shell = subprocess.Popen(["bash", "-c", SLEEPS])
    while not descendants(shell.pid):
        time.sleep(0.01)
    made = new_pod(("default", "mnist"), "u-1", pod_manifest(job(), Role.WORKER, 1, 1, "build"), tmp_path, NOON)
    made.alive["paddle"] = shell.pid
    children = descendants(shell.pid)
    yield made
    for pid in (*children, shell.pid):
        os.kill(pid, signal.SIGKILL)
    shell.wait()


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with the name of py-spy, first in PATH."""
    path = tmp_path / "py-spy"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return path


def install(spy: Path, script: str) -> None:
    spy.write_text(f"#!/bin/sh\n{script}\n")
    spy.chmod(0o755)


def test_without_py_spy_the_state_of_each_process_is_named_and_how_to_see_stacks(
    pod: LocalPod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    os.kill(descendants(pod.alive["paddle"])[0], signal.SIGSTOP)
    ends = time.monotonic() + 10
    while "stopped by a signal" not in (found := describe_processes([pod])):
        assert time.monotonic() < ends, found
    assert found.startswith("mnist-worker-1, process ")
    assert "import time; time.sleep(100)" in found
    assert "pip install py-spy" in found


def test_the_stacks_of_py_spy_follow_the_process_that_they_are_of(pod: LocalPod, spy: Path):
    stack = r"'Process\nPython\n\nThread 1\n    train (t.py:3)\n'"
    install(spy, f'test "$*" = "dump --nonblocking --pid $4" && printf {stack}')
    found = describe_processes([pod])
    assert "Thread 1\n    train (t.py:3)" in found
    assert "pip install" not in found


def test_a_py_spy_that_may_not_look_is_reported(pod: LocalPod, spy: Path):
    install(spy, "echo Permission denied >&2; exit 1")
    assert "it may need CAP_SYS_PTRACE" in describe_processes([pod])


def test_a_pod_whose_processes_are_gone_has_nothing_to_say(pod: LocalPod):
    pod.alive.clear()
    assert describe_processes([pod]) == ""
