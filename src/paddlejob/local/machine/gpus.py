"""The NVIDIA GPUs of this machine, and which of them the user's CUDA_VISIBLE_DEVICES leaves to jobs.

A GPU is known by its UUID. Programs get its index in PCI order: Paddle's launcher looks up the numbers of
`--gpus 0,1` in CUDA_VISIBLE_DEVICES, and fails where that holds UUIDs. Where indexes are not reliable, because a GPU
is divided (MIG) or cannot be read, programs get UUIDs. Standard library only.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

VISIBLE, ORDER, PCI_ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
TIMEOUT = 30.0
"""A driver that is not resident takes more than ten seconds to load on a machine with eight GPUs."""
DRIVER = Path(__file__).with_name("gpu_driver.py")
DEVICE_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""Of the driver on Linux, and on WSL."""


@dataclass(frozen=True)
class Gpu:
    """A GPU, a MIG device, or a device of another vendor, that can be given to one pod."""

    uuid: str
    """Of a device that is known by its file, the path of that file."""
    visible_as: str
    """Its entry in the CUDA_VISIBLE_DEVICES, or the variable of its vendor, of a program."""
    kind: str = "gpu"
    """A DeviceKind."""


@dataclass(frozen=True)
class GpuList:
    gpus: tuple[Gpu, ...] = ()
    note: str = ""
    """Why there are none, or fewer than the user may expect, with the remedy."""


@dataclass(frozen=True)
class Device:
    """A physical GPU."""

    uuid: str
    name: str = ""
    divided: bool = False
    parts: tuple[tuple[str, ...], ...] = ()
    """The names of each of its MIG devices; the first one is the UUID."""

    @property
    def usable(self) -> list[str]:
        """What a program can use of it; of a divided GPU, only its MIG devices."""
        return [part[0] for part in self.parts] if self.divided else [self.uuid]


@dataclass(frozen=True)
class Listing:
    """The GPUs in PCI order; None for one that cannot be read."""

    devices: tuple[Device | None, ...] = ()
    problem: str = ""


def find_gpus(environ: Mapping[str, str] | None = None) -> GpuList:
    """The GPUs that jobs of this user may use."""
    given = os.environ if environ is None else environ
    listing = _listing(given.get("PATH", os.defpath), given.get("LD_LIBRARY_PATH", ""))
    if not listing.devices:
        return GpuList(note=listing.problem)
    names, note = _visible_names(listing.devices, given)
    readable = [device for device in listing.devices if device]
    by_index = len(readable) == len(listing.devices) and not any(device.divided for device in readable)
    indexes = {device.uuid: str(index) for index, device in enumerate(readable)} if by_index else {}
    return GpuList(tuple(Gpu(name, indexes.get(name, name)) for name in names), note or listing.problem)


def environment(gpus: Sequence[Gpu]) -> dict[str, str]:
    """The variables with which a program sees these GPUs of NVIDIA, and no other."""
    return {VISIBLE: ",".join(gpu.visible_as for gpu in gpus), ORDER: PCI_ORDER}


def _visible_names(devices: tuple[Device | None, ...], environ: Mapping[str, str]) -> tuple[list[str], str]:
    """UUIDs by CUDA's rule: in the order of the list, which ends at its first invalid entry."""
    value = environ.get(VISIBLE)
    if value is None:
        return [name for device in devices if device for name in device.usable], ""
    if value.strip() in ("", "-1"):
        return [], f'{VISIBLE}="{value}" hides all GPUs; unset it to use them'
    ordered = _in_cuda_order(devices, environ) if re.search(r"(^|,)\s*\d", value) else devices
    chosen: list[str] = []
    for entry in value.split(","):
        found = _find(entry.strip(), ordered)
        if not found:
            note = f'{VISIBLE}="{value}": {entry.strip() or "an empty entry"} does not name one GPU of this machine'
            return chosen, f"{note}, and CUDA ignores the rest of the list; correct it (`nvidia-smi -L` lists the GPUs)"
        chosen += [name for name in found if name not in chosen]
    return chosen, ""


def _find(entry: str, devices: Sequence[Device | None]) -> list[str]:
    """What an index, a UUID, the unique beginning of one, or the name of a MIG device stands for."""
    if re.fullmatch("[0-9]+", entry):
        device = devices[int(entry)] if int(entry) < len(devices) else None
        return device.usable if device else []
    readable = [device for device in devices if device]
    if entry.startswith("GPU-"):
        matching = [device.usable for device in readable if device.uuid.startswith(entry)]
        return matching[0] if len(matching) == 1 else []
    if not entry.startswith("MIG-"):
        return []
    parts = [part for device in readable for part in device.parts]
    exact = [[part[0]] for part in parts if entry in part]
    abbreviated = [[part[0]] for part in parts if part[0].startswith(entry)]
    return exact[0] if exact else abbreviated[0] if len(abbreviated) == 1 else []


def _in_cuda_order(devices: tuple[Device | None, ...], environ: Mapping[str, str]) -> Sequence[Device | None]:
    """By default CUDA numbers the fastest GPU first, which differs from PCI order where there are several models."""
    readable = {device.uuid: device for device in devices if device}
    if environ.get(ORDER) == PCI_ORDER or len({device.name for device in readable.values()}) < 2:
        return devices
    try:
        seen = ask_cuda({name: value for name, value in environ.items() if name != VISIBLE})
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return devices
    return [readable[uuid] for uuid in seen] if set(seen) == readable.keys() else devices


def ask_cuda(environ: Mapping[str, str]) -> list[str]:
    """The UUIDs that a CUDA program with these variables sees, in its order."""
    done = run_with_timeout([sys.executable, "-I", "-S", str(DRIVER), "cuda"], TIMEOUT, environ)
    if done.returncode:
        raise OSError(done.stderr.strip())
    found: list[str] = json.loads(done.stdout)
    return found


@functools.cache
def _listing(path: str, libraries: str) -> Listing:
    """From NVML, else from nvidia-smi; asked once, also for processes forked later."""
    program = shutil.which("nvidia-smi", path=path)
    if not program and not any(file.exists() for file in DEVICE_FILES):
        return Listing()
    environ = {**os.environ, "PATH": path, "LD_LIBRARY_PATH": libraries}
    try:
        done = run_with_timeout([sys.executable, "-I", "-S", str(DRIVER), "nvml"], TIMEOUT, environ)
        if not done.returncode:
            return _with_problem(tuple(map(_device, json.loads(done.stdout))))
        if program:
            done = run_with_timeout([program, "-L"], TIMEOUT, environ)
    except subprocess.TimeoutExpired:
        return Listing(
            problem=f"the NVIDIA driver did not answer within {TIMEOUT:g} s, so GPUs are not used; "
            "if `nvidia-smi` hangs too, reset the GPU or restart the machine"
        )
    devices = _parse(done.stdout.splitlines()) if program else ()
    if devices:
        return _with_problem((*devices, None) if done.returncode else devices)
    message = next(iter((done.stderr.strip() or done.stdout.strip()).splitlines()), "it lists no GPU")
    return Listing(problem=f"the NVIDIA driver failed ({message}); check it with `nvidia-smi`")


def _with_problem(devices: tuple[Device | None, ...]) -> Listing:
    problem = "a GPU cannot be read and is not used; check it with `nvidia-smi`"
    return Listing(devices, problem if None in devices else "")


def _device(listed: dict[str, object] | None) -> Device | None:
    if listed is None:
        return None
    parts = listed["parts"]
    assert isinstance(parts, list)
    return Device(str(listed["uuid"]), str(listed["name"]), bool(listed["mig"]), tuple(map(tuple, parts)))


def _parse(lines: Iterable[str]) -> tuple[Device | None, ...]:
    """The output of `nvidia-smi -L`; the lines of MIG devices follow that of their GPU."""
    found: dict[int, Device] = {}
    for line in lines:
        gpu = re.match(r"GPU (\d+): (.*) \(UUID: (GPU-[^)]+)\)", line)
        part = re.match(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)", line)
        if gpu:
            found[int(gpu[1])] = Device(gpu[3], gpu[2])
        elif part and found:
            index, last = found.popitem()
            found[index] = replace(last, divided=True, parts=(*last.parts, (part[1],)))
    return tuple(found.get(index) for index in range(max(found, default=-1) + 1))


def run_with_timeout(
    command: list[str], seconds: float, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Like subprocess.run, but never waits for a program that a driver keeps from being killed."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
