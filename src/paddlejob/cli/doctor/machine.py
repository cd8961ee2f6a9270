"""The checks of this machine: what `pdj run` needs."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.api.devices import BY_KIND
from paddlejob.api.types import DeviceKind
from paddlejob.cli.doctor.check import Check, change, good, note
from paddlejob.client.interpreters import find_interpreter
from paddlejob.errors import PaddleJobError

if TYPE_CHECKING:
    from paddlejob.local.machine.resources import Machine

GIB = 1024**3
MIN_MEMORY = 2 * GIB
"""Four small PaddlePaddle processes of 300 MB each, and some reserve."""
MIN_DISK = 1 * GIB
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
    found["kinds"] = ["xpu"] * paddle.is_compiled_with_xpu() + paddle.device.get_all_custom_device_type()
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""
"""Runs in the Python that trains, which need not be the one that runs pdj."""
PROBE_SECONDS = 120.0


def check_machine(python: str = "") -> list[Check]:
    if platform.system() != "Linux":
        return [check_system()]
    interpreter = find_interpreter(python) or training_python()
    facts = probe_python(interpreter)
    return [
        check_system(),
        check_python(interpreter, facts),
        check_paddle(facts),
        check_parameter_server(facts),
        *check_gpus(facts),
        check_memory(),
        check_shared_memory(),
        check_disk(),
        check_addresses(),
        check_namespaces(),
    ]


def training_python() -> str:
    """The Python that `pdj run` uses by default."""
    from paddlejob.local.options import RunOptions

    return RunOptions().interpreter


def probe_python(interpreter: str) -> dict[str, Any]:
    """Versions and features of a Python and its PaddlePaddle, or the `error` that hides them."""
    from paddlejob.local.machine.gpus import run_with_timeout

    try:
        probe = run_with_timeout([interpreter, "-c", PROBE], PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    try:
        facts: dict[str, Any] = json.loads(probe.stdout.strip().rpartition("\n")[2])
    except ValueError:
        return {"error": (probe.stderr.strip() or f"exit status {probe.returncode}").rpartition("\n")[2]}
    return facts


def check_system() -> Check:
    found = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if platform.system() == "Linux":
        return good("system", found)
    return change("system", found, "use Linux for `pdj run`; submitting jobs to a cluster works here")


def check_python(interpreter: str, facts: dict[str, Any]) -> Check:
    version = str(facts.get("python") or "")
    if not version:
        return change(
            "python", f"{interpreter} cannot be run: {facts.get('error')}", "choose another Python with --python"
        )
    return good("python", f"{version} ({interpreter})")


def check_paddle(facts: dict[str, Any]) -> Check:
    if facts.get("paddle"):
        return good("paddle", f"{facts['paddle']}, {'GPU' if facts['cuda'] else 'CPU'} build")
    advice = "run `pip install 'paddlejob[paddle]'` in that Python, or choose another with --python"
    error = str(facts.get("error") or "")
    if "No module named 'paddle'" in error:
        return change("paddle", "not installed", advice)
    return change("paddle", f"cannot be imported: {error}", advice)


def check_parameter_server(facts: dict[str, Any]) -> Check:
    if facts.get("ps"):
        return good("parameter server", "supported")
    if not facts.get("paddle"):
        return note("parameter server", "unknown without paddle")
    return note(
        "parameter server",
        f"not supported by paddle {facts['paddle']}; collective jobs can train, jobs with ps cannot",
        "for jobs with ps, run `pip install 'paddlejob[paddle]'` (2.6.2)",
    )


def check_gpus(facts: dict[str, Any]) -> list[Check]:
    """NVIDIA's, then devices of other vendors."""
    from paddlejob.local.machine.resources import this_machine

    machine = this_machine()
    kinds = dict.fromkeys(gpu.kind for gpu in machine.gpus if gpu.kind != DeviceKind.GPU)
    return [_nvidia(machine, facts), *(_others(kind, len(machine.of_kind(kind)), facts) for kind in kinds)]


def _others(kind: str, count: int, facts: dict[str, Any]) -> Check:
    name = f"{BY_KIND[DeviceKind(kind)].vendor} devices"
    is_usable = facts.get("cuda") if kind == DeviceKind.DCU else kind in facts.get("kinds", ())
    if facts.get("paddle") and not is_usable:
        return change(name, f"{count}, which paddle is not built for", f"install PaddlePaddle for {kind}")
    return good(name, str(count))


def _nvidia(machine: Machine, facts: dict[str, Any]) -> Check:
    count = len(machine.of_kind(DeviceKind.GPU))
    fact, _, remedy = machine.gpu_note.partition("; ")
    if not count and fact:
        return change("GPUs", f"none: {fact}", remedy)
    if not count:
        return note("GPUs", "none", "train jobs that request GPUs with `pdj run --cpu`")
    if facts.get("paddle") and not facts.get("cuda"):
        return change("GPUs", f"{count}, but paddle is a CPU build", "install paddlepaddle-gpu instead")
    if fact:
        return note("GPUs", f"{count}; {fact}", remedy)
    return good("GPUs", str(count))


def check_memory() -> Check:
    free = available_memory()
    found = f"{free / GIB:.1f} GiB of {_total_memory() / GIB:.1f} GiB free, {len(os.sched_getaffinity(0))} CPUs"
    if free < MIN_MEMORY:
        return change("memory", found, "close other programs; four small training processes need about 2 GiB")
    return good("memory", found)


def check_shared_memory() -> Check:
    path = Path("/dev/shm")
    if not path.is_dir():
        return note("shared memory", "/dev/shm does not exist", "data loaders with worker processes do not run")
    free = shutil.disk_usage(path).free
    if free < 64 * 1024**2:
        return note(
            "shared memory", f"{free / 1024**2:.0f} MiB free in /dev/shm", "data loaders may fail; free some space"
        )
    return good("shared memory", f"{free / GIB:.1f} GiB free in /dev/shm")


def check_disk() -> Check:
    from paddlejob.local.state.store import state_directory

    state = state_directory()
    existing = next(path for path in (state, *state.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / GIB:.1f} GiB free for logs and volumes in {state}"
    if not os.access(existing, os.W_OK):
        return change("disk", f"{existing} is not writable", "set PADDLEJOB_STATE to a writable directory")
    if free < MIN_DISK:
        return change("disk", found, "free some space, or set PADDLEJOB_STATE to a directory on a larger disk")
    return good("disk", found)


def check_addresses() -> Check:
    """Every pod gets a loopback address of its own, where its ports must be free."""
    from paddlejob.local.machine.addresses import Addresses

    addresses = Addresses()
    try:
        address = addresses.take()
        for port in range(contract.PORT, contract.PORT + contract.PORTS_PER_POD):
            with socket.socket() as probe:
                probe.bind((address, port))
    except PaddleJobError as error:
        return change("ports", str(error), "stop some jobs (`pdj list`)")
    except OSError as error:
        advice = "stop the program that uses the port; one that listens on all addresses blocks every pod"
        return change("ports", f"port {port} at {address}: {error.strerror}", advice)
    finally:
        addresses.close()
    last = contract.PORT + contract.PORTS_PER_POD - 1
    return good("ports", f"{contract.PORT} to {last} are free on the loopback addresses of pods")


def check_namespaces() -> Check:
    from paddlejob.local.sandbox.supervisor import probe

    isolated, why_not = probe()
    if isolated:
        return good("mounts", "mount namespaces are available")
    return note(
        "mounts",
        f"mount namespaces are not available: {why_not}",
        "jobs with volumeMounts are rejected; run as root, permit user namespaces, or remove volumeMounts from the job",
    )


def _total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return _total_memory()
