"""What is said about the processes of pods that hang, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlejob.agent.agent import HOOK
from paddlejob.local import stacks
from paddlejob.local.pod import LocalPod, new_pod
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.stacks import MOST_PROCESSES, STACK_LINES, describe_processes
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import NOON, Role, job

CHILDREN = 5
FAMILY = f"for i in 1 2 3 4; do sleep 100 & done; {sys.executable} -c 'import time; time.sleep(100)' & wait"
NO_STACKS = "py-spy could not read the stacks; it may need CAP_SYS_PTRACE, or no process runs Python"


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[list[LocalPod]]:
    """Three pods, whose containers have a shell and five processes each, the newest of them Python."""
    shells = [subprocess.Popen(["bash", "-c", FAMILY]) for _ in range(3)]
    ends = time.monotonic() + 30
    while any(len(descendants(shell.pid)) < CHILDREN for shell in shells):
        assert time.monotonic() < ends
        time.sleep(0.01)
    made = []
    for index, shell in enumerate(shells):
        manifest = pod_manifest(job(workers=3), Role.WORKER, index, 1, "build")
        made.append(new_pod(f"u-{index}", manifest, tmp_path, NOON))
        made[-1].alive["paddle"] = shell.pid
    yield made
    for shell in shells:
        for pid in (*descendants(shell.pid), shell.pid):
            os.kill(pid, signal.SIGKILL)
        shell.wait()


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with the name of py-spy, first in PATH once it is written."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "py-spy"


def install(spy: Path, script: str) -> None:
    spy.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    spy.chmod(0o755)


def newest(pod: LocalPod) -> list[int]:
    return sorted(descendants(pod.alive["paddle"]))[-MOST_PROCESSES:]


def described(pods: list[LocalPod], expected: str) -> str:
    """The description, once a line of it says what is expected: a process takes its time to come that far."""
    ends = time.monotonic() + 30
    while expected not in (found := describe_processes(pods)):
        assert time.monotonic() < ends, found
        time.sleep(0.01)
    return found


def test_the_newest_processes_of_the_first_two_pods_are_described_and_how_to_see_stacks(
    pods: list[LocalPod], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    first, _, third = newest(pods[0])
    described(pods, f"process {first} (sleep 100): sleeping")
    found = described(pods, f"process {third} ({Path(sys.executable).name} -c import time; time.sleep(100)): sleeping")
    *lines, last = found.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["mnist-worker-0"] * 3 + ["mnist-worker-1"] * 3
    assert lines[0].startswith(f"mnist-worker-0, process {first} ")
    assert f"process {third} " in lines[2]
    assert "pip install py-spy" in last


def test_a_pod_with_a_stopped_process_comes_first(pods: list[LocalPod]):
    os.kill(newest(pods[2])[-1], signal.SIGSTOP)
    found = described(pods, "stopped by a signal")
    assert found.startswith("mnist-worker-2, ")
    assert "mnist-worker-1, " not in found


@pytest.mark.parametrize("script", ["echo denied >&2; exit 1", "exec sleep 100", "#!/no/such/interpreter\n"])
def test_a_py_spy_that_may_not_look_hangs_or_cannot_be_executed_is_reported(
    pods: list[LocalPod], spy: Path, monkeypatch: pytest.MonkeyPatch, script: str
):
    monkeypatch.setattr(stacks, "DUMP_SECONDS", 0.2)
    install(spy, script)
    assert describe_processes(pods[:1]).endswith(NO_STACKS)


def test_the_first_lines_of_each_stack_follow_the_process_that_they_are_of(pods: list[LocalPod], spy: Path):
    frames = [f"    frame{number} (a.py)" for number in range(40)]
    body = "\\n".join(["Process 1: x", "Python v3", "", "Thread 1 (idle)", *frames])
    install(spy, f'test "$*" = "dump --nonblocking --pid $4" && printf "{body}"')
    lines = describe_processes(pods[:1]).splitlines()
    assert len(lines) == MOST_PROCESSES * (1 + STACK_LINES)
    assert lines[1:3] == ["Thread 1 (idle)", "    frame0 (a.py)"]
    assert not {"Python v3"} & set(lines)
    assert "pip install" not in lines[-1]


def test_a_pod_whose_container_has_not_started_or_is_gone_is_left_out(pods: list[LocalPod]):
    pods[0].alive.clear()
    assert describe_processes(pods[:1]) == ""
    assert describe_processes(pods[:2]).startswith("mnist-worker-1, ")


@pytest.fixture
def trains(tmp_path: Path) -> Iterator[Callable[[LocalPod, str], None]]:
    """Lets a pod run a Python program that hangs in a function."""
    program, started = tmp_path / "train.py", list[subprocess.Popen[bytes]]()
    program.write_text(
        "import sys, time\ndef load():\n    time.sleep(100)\ndef save():\n    time.sleep(100)\neval(sys.argv[1])()"
    )

    def start(pod: LocalPod, function: str) -> None:
        command = ["bash", "-c", f"{sys.executable} {program} {function} & wait"]
        started.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": HOOK}))
        pod.alive["paddle"] = started[-1].pid

    yield start
    for shell in started:
        for pid in (*descendants(shell.pid), shell.pid):
            os.kill(pid, signal.SIGKILL)
        shell.wait()


def test_where_each_worker_hangs_comes_first_if_its_python_can_show_it(
    pods: list[LocalPod], trains: Callable[[LocalPod, str], None]
):
    for pod, function in zip(pods, ("load", "load", "save"), strict=True):
        trains(pod, function)
    found = described(pods, "2 of 3 workers in load (train.py:3); worker 2 in save (train.py:5)")
    assert found.startswith("2 of 3 workers in load (train.py:3); worker 2 in save (train.py:5)\n")
    assert 'train.py", line 3 in load' in found
    assert "py-spy" not in found
