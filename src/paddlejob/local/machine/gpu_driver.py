"""Asks the NVIDIA driver for GPUs, as a program of its own: a driver that hangs must not take its caller along.

`python gpu_driver.py nvml` prints what NVML lists; `python gpu_driver.py cuda` prints the UUIDs that a CUDA program
sees, in its order; `python gpu_driver.py use` prints how busy each GPU is, `python gpu_driver.py usage` does so every
few seconds until its reader is gone. All print JSON. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
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
    """nvmlUtilization_t, in percent."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Memory(ctypes.Structure):
    """nvmlMemory_t, in bytes."""

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
    found = _each_gpu(_describe)
    if None not in found:
        found.sort(key=lambda gpu: gpu["pci"] if gpu else [])
    return found


def read_use() -> list[dict[str, Any]]:
    """How busy each GPU is, in PCI order; GPUs that do not tell, such as divided ones, are left out."""
    return sorted((gpu for gpu in _each_gpu(_use) if gpu), key=lambda gpu: list(gpu["pci"]))


def _each_gpu(read: Callable[[Library, ctypes.c_void_p], dict[str, Any]]) -> list[dict[str, Any] | None]:
    nvml = Library("libnvidia-ml.so.1")
    nvml.call("nvmlInit_v2")
    found: list[dict[str, Any] | None] = []
    for index in range(nvml.number("nvmlDeviceGetCount_v2")):
        try:
            handle = ctypes.c_void_p()
            nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            found.append(read(nvml, handle))
        except DriverError:
            found.append(None)
    return found


def _use(nvml: Library, handle: ctypes.c_void_p) -> dict[str, Any]:
    pci, busy, memory = PciInfo(), Utilization(), Memory()
    nvml.call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(pci))
    nvml.call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(busy))
    nvml.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    return {
        "uuid": nvml.text("nvmlDeviceGetUUID", handle),
        "name": nvml.text("nvmlDeviceGetName", handle),
        "pci": [pci.domain, pci.bus, pci.device],
        "percent": busy.gpu,
        "memory": memory.used,
        "capacity": memory.total,
    }


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


QUESTIONS: dict[str, Callable[[], object]] = {"nvml": list_with_nvml, "cuda": list_with_cuda, "use": read_use}


def main() -> None:
    try:
        while sys.argv[1] == "usage":
            print(json.dumps(read_use()), flush=True)
            time.sleep(USAGE_INTERVAL)
        print(json.dumps(QUESTIONS[sys.argv[1]]()))
    except (OSError, AttributeError, DriverError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
