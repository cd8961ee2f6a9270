"""What `pdj doctor` looks at on this machine: whatever `pdj run` needs."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.cli.doctor.check import Check, change, good, note
from paddlejob.errors import PaddleJobError

GIB = 1024**3
LEAST_MEMORY = 2 * GIB
"""Four small processes of PaddlePaddle, 300 MB each, with room to work."""
LEAST_DISK = 1 * GIB
PROBE = """
import json, sys
found = {"python": sys.version.split()[0]}
try:
    import paddle
    core = getattr(getattr(paddle, "base", None) or paddle.fluid, "core")
    found["paddle"] = paddle.__version__
    found["ps"] = hasattr(core, "DistFleetWrapper")
    found["cuda"] = paddle.is_compiled_with_cuda()
    found["gpus"] = paddle.device.cuda.device_count() if found["cuda"] else 0
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""
"""Runs in the Python that would train, which need not be ours."""


def check_machine(python: str = "") -> list[Check]:
    if platform.system() != "Linux":
        return [check_system()]
    interpreter = python or training_python()
    asked = ask_python(interpreter)
    return [
        check_system(),
        check_python(interpreter, asked),
        check_paddle(asked),
        check_parameter_server(asked),
        check_gpus(asked),
        check_memory(),
        check_shared_memory(),
        check_disk(),
        check_addresses(),
        check_namespaces(),
    ]


def training_python() -> str:
    """The one that `pdj run` takes where none is named."""
    from paddlejob.local.options import RunOptions

    return RunOptions().interpreter


def ask_python(interpreter: str) -> dict[str, Any]:
    try:
        said = subprocess.run([interpreter, "-c", PROBE], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    try:
        answer: dict[str, Any] = json.loads(said.stdout.strip().rpartition("\n")[2])
    except ValueError:
        return {"error": (said.stderr.strip() or f"exit status {said.returncode}").rpartition("\n")[2]}
    return answer


def check_system() -> Check:
    found = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if platform.system() == "Linux":
        return good("system", found)
    return change("system", found, "`pdj run` needs Linux; jobs can still be submitted to a cluster from here")


def check_python(interpreter: str, asked: dict[str, Any]) -> Check:
    version = str(asked.get("python") or "")
    if not version:
        return change("python", f"{interpreter} does not run: {asked.get('error')}", "name one that does with --python")
    return good("python", f"{version} ({interpreter})")


def check_paddle(asked: dict[str, Any]) -> Check:
    if asked.get("paddle"):
        return good("paddle", f"{asked['paddle']}, {'GPU' if asked['cuda'] else 'CPU'} build")
    advice = "pip install 'paddlejob[paddle]' into that Python, or name one that has it with --python"
    error = str(asked.get("error") or "")
    if "No module named 'paddle'" in error:
        return change("paddle", "is not installed", advice)
    return change("paddle", f"cannot be imported: {error}", advice)


def check_parameter_server(asked: dict[str, Any]) -> Check:
    if asked.get("ps"):
        return good("parameter server", "compiled in: jobs with ps can train")
    if not asked.get("paddle"):
        return note("parameter server", "not known without paddle")
    return note(
        "parameter server",
        f"not compiled into paddle {asked['paddle']}: jobs with ps cannot train, collective ones can",
        "for them: pip install 'paddlejob[paddle]' (2.6.2)",
    )


def check_gpus(asked: dict[str, Any]) -> Check:
    from paddlejob.local.machine.resources import this_machine

    count = len(this_machine().gpus)
    if not count:
        return note("GPUs", "none", "jobs that ask for one train with `pdj run --cpu`")
    if asked.get("paddle") and not asked.get("cuda"):
        return change("GPUs", f"{count}, but paddle is a CPU build", "pip install paddlepaddle-gpu in its place")
    return good("GPUs", str(count))


def check_memory() -> Check:
    free = _available_memory()
    found = f"{free / GIB:.1f} GiB of {_total_memory() / GIB:.1f} GiB free, {len(os.sched_getaffinity(0))} CPUs"
    if free < LEAST_MEMORY:
        return change("memory", found, "end other programs: four small training processes need about 2 GiB")
    return good("memory", found)


def check_shared_memory() -> Check:
    path = Path("/dev/shm")
    if not path.is_dir():
        return note("shared memory", "/dev/shm is not there", "data loaders with workers do not run")
    free = shutil.disk_usage(path).free
    if free < 64 * 1024**2:
        return note("shared memory", f"{free / 1024**2:.0f} MiB free in /dev/shm", "data loaders may fail; free some")
    return good("shared memory", f"{free / GIB:.1f} GiB free in /dev/shm")


def check_disk() -> Check:
    from paddlejob.local.store import state_directory

    state = state_directory()
    there = next(path for path in (state, *state.parents) if path.exists())
    free = shutil.disk_usage(there).free
    found = f"{free / GIB:.1f} GiB free for logs and volumes in {state}"
    if not os.access(there, os.W_OK):
        return change("disk", f"{there} cannot be written to", "set PADDLEJOB_STATE to a directory that can")
    if free < LEAST_DISK:
        return change("disk", found, "free some, or set PADDLEJOB_STATE to a larger disk")
    return good("disk", found)


def check_addresses() -> Check:
    """Every pod gets an address of its own, on which the ports of a pod must be free."""
    from paddlejob.local.machine.addresses import Addresses

    addresses = Addresses()
    try:
        address = addresses.take()
        for port in range(contract.PORT, contract.PORT + contract.PORTS_PER_POD):
            with socket.socket() as probe:
                probe.bind((address, port))
    except PaddleJobError as error:
        return change("ports", str(error), "end some jobs (`pdj list`)")
    except OSError as error:
        advice = "free it, or let 127.0.0.0/8 be used (a program that listens on all addresses takes it everywhere)"
        return change("ports", f"port {port} at {address}: {error.strerror}", advice)
    finally:
        addresses.close()
    last = contract.PORT + contract.PORTS_PER_POD - 1
    return good("ports", f"{contract.PORT} to {last} are free at loopback addresses of pods")


def check_namespaces() -> Check:
    from paddlejob.local.sandbox.supervisor import probe

    isolated, why_not = probe()
    if isolated:
        return good("mounts", "pods can have file trees of their own")
    return note(
        "mounts",
        f"pods cannot have file trees of their own: {why_not}",
        "volumes are found by their mount paths only where those exist; permit user namespaces to change that",
    )


def _total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return _total_memory()
