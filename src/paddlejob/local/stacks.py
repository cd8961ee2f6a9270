"""What the processes of a pod do: their Python stacks if py-spy is installed, otherwise their state in the kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paddlejob.local.pod import LocalPod
from paddlejob.local.sandbox.proc import descendants

MOST_PODS = 2
MOST_PROCESSES = 3
"""Of a pod. The newest are looked at: a launcher starts the program that trains."""
DUMP_SECONDS = 2.0
STACK_LINES = 12
STATES = {"T": "stopped by a signal", "t": "stopped by a debugger", "D": "in uninterruptible I/O", "S": "sleeping"}


def describe_processes(pods: Sequence[LocalPod]) -> str:
    """A few lines for each of the first pods; those with a stopped process come first, as the others wait for it."""
    found = [(pod, _processes(pod)) for pod in pods]
    found.sort(key=lambda one: not any(_state(pid) in "Tt" for pid in one[1]))
    spy = next((path for _, pids in found for pid in pids if (path := _py_spy(pid))), None)
    lines = [_describe(pod, pids, spy) for pod, pids in found[:MOST_PODS] if pids]
    if lines and spy is None:
        lines.append("to see Python stacks here, install py-spy in the environment of the program (pip install py-spy)")
    elif lines and not any("Thread " in line for line in lines):
        lines.append("py-spy could not read the stacks; it may need CAP_SYS_PTRACE, or no process runs Python")
    return "\n".join(lines)


def _processes(pod: LocalPod) -> list[int]:
    """Without the first process of the container, which is the engine's own."""
    init = pod.alive.get(pod.main["name"], 0)
    return sorted(descendants(init))[-MOST_PROCESSES:] if init else []


def _describe(pod: LocalPod, pids: Sequence[int], spy: str | None) -> str:
    return "\n".join(f"{pod.seen.name}, {_describe_process(pid, spy)}" for pid in pids)


def _describe_process(pid: int, spy: str | None) -> str:
    state = _state(pid)
    waits = _read(pid, "wchan").strip()
    where = f" in {waits}" if waits not in ("", "0") else ""
    headline = f"process {pid} ({_command(pid)}): {STATES.get(state, f'state {state}')}{where}"
    stack = _dump(spy, pid) if spy else ""
    return f"{headline}\n{stack}" if stack else headline


def _dump(spy: str, pid: int) -> str:
    """Without pausing the process, which may be stopped already; empty if it is no Python or may not be traced."""
    command = [spy, "dump", "--nonblocking", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    # The first lines repeat the command and the version of Python.
    _, _, threads = done.stdout.partition("\n\n")
    return "\n".join(threads.strip().splitlines()[:STACK_LINES])


def _py_spy(pid: int) -> str | None:
    """In PATH, or beside the interpreter that runs the program."""
    beside = [Path(first).parent for first in _arguments(pid)[:1] if "/" in first]
    with suppress(OSError):
        beside.append(Path("/proc", str(pid), "exe").readlink().parent)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, beside)])
    return shutil.which("py-spy", path=path)


def _state(pid: int) -> str:
    return (_read(pid, "stat").rpartition(")")[2].split() or ["?"])[0]


def _command(pid: int) -> str:
    program, *arguments = _arguments(pid)
    return " ".join(" ".join([Path(program).name, *arguments]).split())[:80]


def _arguments(pid: int) -> list[str]:
    return _read(pid, "cmdline").rstrip("\0").split("\0")


def _read(pid: int, name: str) -> str:
    try:
        return Path("/proc", str(pid), name).read_bytes().decode(errors="replace")
    except OSError:
        return ""
