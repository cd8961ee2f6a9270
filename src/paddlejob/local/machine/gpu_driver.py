"""Asks the NVIDIA driver for GPUs, as a program of its own: a driver that hangs must not take its caller along.

`python gpu_driver.py nvml` prints what NVML lists; `python gpu_driver.py cuda` prints the UUIDs that a CUDA program
sees, in its order; `python gpu_driver.py usage` prints a line every few seconds with what is in use of each GPU, until
its reader is gone. All print JSON. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

MIG_ENABLED = 1
USAGE_INTERVAL = 2.0
BUFFER = 96


class DriverError(Exception):
    """A call of the driver's library failed."""


class PciInfo(ctypes.Structure):
    """nvmlPciInfo_t."""

    _fields_ = (
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("device_id", ctypes.c_uint),
        ("subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


class Utilization(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Library:
    def __init__(self, file: str) -> None:
        self._library = ctypes.CDLL(file)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise DriverError(f"{name} failed with code {code}")

    def number(self, name: str, *arguments: Any) -> int:
        found = ctypes.c_uint()
        self.call(name, *arguments, ctypes.byref(found))
        return found.value

    def text(self, name: str, handle: ctypes.c_void_p) -> str:
        found = ctypes.create_string_buffer(BUFFER)
        self.call(name, handle, found, ctypes.c_uint(BUFFER))
        return found.value.decode()


def list_with_nvml() -> list[dict[str, Any] | None]:
    """All GPUs in PCI order; None for one that cannot be read, for instance because it fell off the bus."""
    nvml = Library("libnvidia-ml.so.1")
    nvml.call("nvmlInit_v2")
    found: list[dict[str, Any] | None] = []
    for index in range(nvml.number("nvmlDeviceGetCount_v2")):
        try:
            handle = ctypes.c_void_p()
            nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            found.append(_describe(nvml, handle))
        except DriverError:
            found.append(None)
    if None not in found:
        found.sort(key=lambda gpu: gpu["pci"] if gpu else [])
    return found


def measure() -> Iterator[list[dict[str, Any]]]:
    """What is in use of each GPU, in PCI order, every few seconds: percent of its time, and bytes of its memory."""
    nvml = Library("libnvidia-ml.so.1")
    nvml.call("nvmlInit_v2")
    handles = [ctypes.c_void_p() for _ in range(nvml.number("nvmlDeviceGetCount_v2"))]
    for index, handle in enumerate(handles):
        nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
    while True:
        yield sorted((_usage(nvml, handle) for handle in handles), key=lambda gpu: list(gpu["pci"]))
        time.sleep(USAGE_INTERVAL)


def _usage(nvml: Library, handle: ctypes.c_void_p) -> dict[str, Any]:
    pci, used, memory = PciInfo(), Utilization(), Memory()
    nvml.call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(pci))
    nvml.call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(used))
    nvml.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    uuid = nvml.text("nvmlDeviceGetUUID", handle)
    return {"uuid": uuid, "pci": [pci.domain, pci.bus, pci.device], "percent": used.gpu, "memory": memory.used}


def _describe(nvml: Library, handle: ctypes.c_void_p) -> dict[str, Any]:
    pci = PciInfo()
    nvml.call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(pci))
    uuid = nvml.text("nvmlDeviceGetUUID", handle)
    return {
        "uuid": uuid,
        "name": nvml.text("nvmlDeviceGetName", handle),
        "pci": [pci.domain, pci.bus, pci.device],
        "mig": _has_mig(nvml, handle),
        "parts": _mig_devices(nvml, handle, uuid) if _has_mig(nvml, handle) else [],
    }


def _has_mig(nvml: Library, handle: ctypes.c_void_p) -> bool:
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    try:
        nvml.call("nvmlDeviceGetMigMode", handle, ctypes.byref(current), ctypes.byref(pending))
    except (DriverError, AttributeError):
        return False
    return current.value == MIG_ENABLED


def _mig_devices(nvml: Library, handle: ctypes.c_void_p, uuid: str) -> list[list[str]]:
    """Both names of each MIG device: its UUID, and the name that drivers before 470 use."""
    found = []
    for index in range(nvml.number("nvmlDeviceGetMaxMigDeviceCount", handle)):
        part = ctypes.c_void_p()
        try:
            nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, ctypes.c_uint(index), ctypes.byref(part))
            instance = nvml.number("nvmlDeviceGetGpuInstanceId", part)
            compute = nvml.number("nvmlDeviceGetComputeInstanceId", part)
            found.append([nvml.text("nvmlDeviceGetUUID", part), f"MIG-{uuid}/{instance}/{compute}"])
        except DriverError:
            continue
    return found


def list_with_cuda() -> list[str]:
    """The UUIDs that a CUDA program sees, by its CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER."""
    cuda = Library("libcuda.so.1")
    try:
        cuda.call("cuInit", ctypes.c_uint(0))
    except DriverError as error:
        if str(error).endswith(" 100"):  # CUDA_ERROR_NO_DEVICE
            return []
        raise
    found = []
    for index in range(cuda.number("cuDeviceGetCount")):
        device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        cuda.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        cuda.call("cuDeviceGetUuid", ctypes.byref(uuid), device)
        digits = bytes(uuid).hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        found.append("GPU-" + "-".join(parts))
    return found


def main() -> None:
    try:
        if sys.argv[1:] == ["usage"]:
            for gpus in measure():
                print(json.dumps(gpus), flush=True)
        print(json.dumps(list_with_cuda() if sys.argv[1:] == ["cuda"] else list_with_nvml()))
    except (OSError, DriverError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
