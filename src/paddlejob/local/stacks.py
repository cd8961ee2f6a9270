"""What the processes of pods that hang do: where each worker is, and the stacks or the states of a few processes.

Python processes show their stacks on a signal (agent/hook); py-spy, where it is installed, shows those that do not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from paddlejob.agent.agent import stacks
from paddlejob.local.pod import LocalPod
from paddlejob.local.sandbox.proc import descendants
from paddlejob.plan.diagnosis.hangs import Process, find_hang, parse_processes

MOST_PODS = 2
MOST_PROCESSES = 3
"""Of a pod. The newest are looked at: a launcher starts the program that trains."""
DUMP_SECONDS = 2.0
STACK_LINES = 12
STATES = {"T": "stopped by a signal", "t": "stopped by a debugger", "D": "in uninterruptible I/O", "S": "sleeping"}


def describe_processes(pods: Sequence[LocalPod]) -> str:
    """Where the workers hang, then a few lines for each of the first pods.

    Those with a stopped process come first, as the others wait for it.
    """
    found = [(pod, _processes(pod)) for pod in pods]
    hang = find_hang({pod.seen.index: processes for pod, processes in found})
    found.sort(key=lambda one: not any(process.state in "Tt" for process in one[1]))
    spy = next((path for _, processes in found for one in processes if (path := _py_spy(one.pid))), None)
    newest = [(pod, [_with_stack(one, spy) for one in processes[-MOST_PROCESSES:]]) for pod, processes in found]
    lines = [f"{pod.seen.name}, {_describe(one)}" for pod, processes in newest[:MOST_PODS] for one in processes]
    if any(process.stack for _, processes in found for process in processes):
        return "\n".join([hang, *lines])
    if lines and spy is None:
        lines.append("to see Python stacks here, install py-spy in the environment of the program (pip install py-spy)")
    elif lines and not any("Thread " in line for line in lines):
        lines.append("py-spy could not read the stacks; it may need CAP_SYS_PTRACE, or no process runs Python")
    return "\n".join(lines)


def _processes(pod: LocalPod) -> list[Process]:
    """Without the first process of the container, which is the engine's own; the newest last."""
    init = pod.alive.get(pod.main["name"], 0)
    return list(parse_processes(stacks(sorted(descendants(init))))) if init else []


def _with_stack(process: Process, spy: str | None) -> Process:
    return process if process.stack or spy is None else replace(process, stack=_dump(spy, process.pid))


def _describe(process: Process) -> str:
    waits = _read(process.pid, "wchan").strip()
    where = f" in {waits}" if waits not in ("", "0") else ""
    state = STATES.get(process.state, f"state {process.state}")
    headline = f"process {process.pid} ({_command(process.pid)}): {state}{where}"
    stack = "\n".join(process.stack.strip().splitlines()[:STACK_LINES])
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
    return threads


def _py_spy(pid: int) -> str | None:
    """In PATH, or beside the interpreter that runs the program."""
    beside = [Path(first).parent for first in _arguments(pid)[:1] if "/" in first]
    with suppress(OSError):
        beside.append(Path("/proc", str(pid), "exe").readlink().parent)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, beside)])
    return shutil.which("py-spy", path=path)


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
