"""Resources that jobs request, and the capacity of this machine."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paddlejob.api.types import Slot, Spec
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.machine.cgroups import cpu_limit, memory_limit
from paddlejob.local.machine.gpus import Gpu, find_gpus

UNITS = {"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
UNITS |= {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")}
GPU = "nvidia.com/gpu"


def parse_quantity(quantity: str | int | float) -> float:
    """A quantity as Kubernetes writes it: 2, "500m", "1.5Gi", "1e3"."""
    found = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", str(quantity).strip())
    if not found or found[2] not in UNITS:
        raise BadInput(f"{quantity!r} is not a quantity; write it as 2, 500m or 1Gi")
    return float(found[1]) * UNITS[found[2]]


def limits(container: dict[str, Any]) -> dict[str, Any]:
    return (container.get("resources") or {}).get("limits") or {}


def requests(container: dict[str, Any]) -> dict[str, Any]:
    """A limit without a request counts as a request."""
    return {**limits(container), **((container.get("resources") or {}).get("requests") or {})}


def of_pod(pod_spec: dict[str, Any]) -> Counter[str]:
    """The requests of all containers of a pod."""
    total: Counter[str] = Counter()
    for container in pod_spec["containers"]:
        for name, quantity in requests(container).items():
            total[name] += parse_quantity(quantity)  # type: ignore[assignment]
    return total


def of_job(spec: Spec) -> Counter[str]:
    return of_replicas(spec, spec.slots)


def of_replicas(spec: Spec, slots: Iterable[Slot]) -> Counter[str]:
    """What some replicas of a job request together."""
    total: Counter[str] = Counter()
    for role, count in Counter(role for role, _ in slots).items():
        for name, requested in of_pod(spec.roles[role].template["spec"]).items():
            total[name] += requested * count
    return total


def is_accelerator(resource: str) -> bool:
    return "/" in resource


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
        """How much of a resource there is; None if it is not counted."""
        if is_accelerator(resource):
            return len(self.gpus) if resource == GPU else 0
        return {"cpu": float(self.cpus), "memory": float(self.memory)}.get(resource)

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
    found = find_gpus()
    return Machine(platform.node(), cpus, min(pages, memory_limit() or pages), found.gpus, found.note)


def format_quantity(resource: str, quantity: float) -> str:
    """For people: memory in GiB, the rest as a plain number."""
    return f"{quantity / 1024**3:.1f} GiB" if resource == "memory" else f"{quantity:g}"
