"""The capacity of this machine."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from paddlejob.api.devices import device_of, device_shared_by, may_be_device
from paddlejob.errors import NotPossible
from paddlejob.local.machine.cgroups import cpu_limit, memory_limit
from paddlejob.local.machine.devices import find_devices
from paddlejob.local.machine.gpus import Gpu

NOT_HERE = "nvidia.com/mig-"
"""A device of a divided GPU is requested as nvidia.com/gpu on this machine, as with the `single` strategy."""


def kind_of(resource: str) -> str:
    """The kind of device that a resource counts; empty if it is none."""
    device = None if resource.startswith(NOT_HERE) else device_of(resource)
    return device.kind.value if device else ""


@dataclass(frozen=True)
class Machine:
    name: str
    cpus: float
    memory: int
    gpus: tuple[Gpu, ...] = ()
    """Those that jobs may use."""
    gpu_note: str = ""
    """Why there are none, or fewer than the user may expect, with the remedy."""

    def capacity(self, resource: str) -> float | None:
        """How much of a resource there is; None if it is not counted, as networks and shares of a device are not."""
        if device_shared_by(resource):
            return None
        if may_be_device(resource):
            return len(self.of_kind(kind_of(resource)))
        return {"cpu": float(self.cpus), "memory": float(self.memory)}.get(resource)

    def of_kind(self, kind: str) -> list[Gpu]:
        return [gpu for gpu in self.gpus if gpu.kind == kind]

    @property
    def labels(self) -> dict[str, str]:
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        return {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": machine}


def this_machine() -> Machine:
    if platform.system() != "Linux":
        raise NotPossible(
            f"`pdj run` needs Linux, and this is {platform.system()}; use a Linux virtual machine or container, "
            "or train on a cluster with `pdj submit`"
        )
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cpus = min(len(os.sched_getaffinity(0)), cpu_limit() or float("inf"))
    found = find_devices()
    return Machine(platform.node(), cpus, min(pages, memory_limit() or pages), found.gpus, found.note)
