"""What one job holds on this machine: a block of ports, and the resources that it requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from paddlejob.api.types import Slot
from paddlejob.local.machine.gpu_locks import GpuLock
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.ports import PortBlock


@dataclass
class Allocation:
    ports: PortBlock | None = None
    resources: Counter[str] | None = None
    """What is reserved for the job, or None before that."""
    slots: frozenset[Slot] = frozenset()
    """The replicas that it is reserved for; of an elastic job perhaps not all."""
    gpu_locks: dict[str, list[GpuLock]] = field(default_factory=dict)
    """By pod. A pod keeps its GPUs when it is replaced, and when the job is scaled."""

    @property
    def port(self) -> int | None:
        """The first port of the job's pods, once it is known."""
        return self.ports.first if self.ports else None

    @property
    def shared_gpus(self) -> list[Gpu]:
        """Those that other jobs use too."""
        return [lock.gpu for locks in self.gpu_locks.values() for lock in locks if lock.shared]

    def gpus(self, pod: str) -> list[Gpu]:
        return [lock.gpu for lock in self.gpu_locks.get(pod, [])]

    def keep_gpus_of(self, pods: Collection[str]) -> None:
        """Give back the GPUs of all other pods."""
        for pod in [name for name in self.gpu_locks if name not in pods]:
            for lock in self.gpu_locks.pop(pod):
                lock.release()

    def clear(self) -> None:
        self.resources = None
        self.slots = frozenset()
        self.keep_gpus_of(())
        if self.ports:
            self.ports.close()
            self.ports = None
