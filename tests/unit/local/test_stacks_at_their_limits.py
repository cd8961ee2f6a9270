"""What is said about processes that hang when py-spy does not answer, and of how many of them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.local import stacks
from paddlejob.local.pod import LocalPod, new_pod
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.stacks import MOST_PROCESSES, STACK_LINES, describe_processes
from paddlejob.plan.objects.pod import pod_manifest
from tests.support.builders import NOON, Role, job

CHILDREN = 5
FAMILY = "for i in 1 2 3 4 5; do sleep 100 & done; wait"
NO_STACKS = "py-spy could not read the stacks; it may need CAP_SYS_PTRACE, or no process runs Python"


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[list[LocalPod]]:
    """Three pods, whose containers have five processes each."""
    shells = [subprocess.Popen(["bash", "-c", FAMILY]) for _ in range(3)]
    ends = time.monotonic() + 30
    while any(len(descendants(shell.pid)) < CHILDREN for shell in shells):
        assert time.monotonic() < ends
        time.sleep(0.01)
    made = []
    for index, shell in enumerate(shells):
        manifest = pod_manifest(job(workers=3), Role.WORKER, index, 1, "build")
        made.append(new_pod(("default", "mnist"), f"u-{index}", manifest, tmp_path, NOON))
        made[-1].alive["paddle"] = shell.pid
    yield made
    for shell in shells:
        for pid in (*descendants(shell.pid), shell.pid):
            os.kill(pid, signal.SIGKILL)
        shell.wait()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    spy = folder / "py-spy"
    spy.write_text(f"#!/bin/sh\n{script}\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_the_newest_processes_of_the_first_two_pods_are_described(pods: list[LocalPod]):
    lines = [line for line in describe_processes(pods).splitlines() if line.startswith("mnist-")]
    assert [line.partition(",")[0] for line in lines] == ["mnist-worker-0"] * 3 + ["mnist-worker-1"] * 3
    newest = sorted(descendants(pods[0].alive["paddle"]))[-MOST_PROCESSES:]
    for pid, line in zip(newest, lines, strict=False):
        assert line.startswith(f"mnist-worker-0, process {pid} (sleep 100): sleeping")


def test_a_pod_with_a_stopped_process_comes_first(pods: list[LocalPod]):
    os.kill(sorted(descendants(pods[2].alive["paddle"]))[-1], signal.SIGSTOP)
    ends = time.monotonic() + 30
    while "stopped by a signal" not in (found := describe_processes(pods)):
        assert time.monotonic() < ends, found
    assert found.startswith("mnist-worker-2, ")
    assert "mnist-worker-1, " not in found


def test_a_py_spy_that_hangs_or_cannot_be_executed_is_not_waited_for(
    pods: list[LocalPod], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stacks, "DUMP_SECONDS", 0.2)
    for script in ("exec sleep 100", "exit 1"):
        install(tmp_path, monkeypatch, script)
        assert describe_processes(pods[:1]).endswith(NO_STACKS)
    (tmp_path / "py-spy").write_text("#!/no/such/interpreter\n")
    assert describe_processes(pods[:1]).endswith(NO_STACKS)


def test_the_first_lines_of_a_long_stack_are_shown(
    pods: list[LocalPod], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    frames = [f"    frame{number} (a.py)" for number in range(40)]
    body = "\\n".join(["Process 1: x", "Python v3", "", "Thread 1 (idle)", *frames])
    install(tmp_path, monkeypatch, f"printf '{body}'")
    lines = describe_processes(pods[:1]).splitlines()
    assert len(lines) == MOST_PROCESSES * (1 + STACK_LINES)
    assert lines[1:3] == ["Thread 1 (idle)", "    frame0 (a.py)"]
    assert "Python v3" not in lines


def test_a_pod_whose_container_has_not_started_is_left_out(pods: list[LocalPod]):
    pods[0].alive.clear()
    assert describe_processes(pods[:1]) == ""
    assert describe_processes(pods[:2]).startswith("mnist-worker-1, ")
