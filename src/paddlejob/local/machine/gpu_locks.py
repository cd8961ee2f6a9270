"""Locks on GPUs that hold on the whole machine: for all users, and whatever their state directories are.

A lock is an abstract socket with the name of the GPU. Such a name needs no directory that all users may write, and
the kernel releases it with its process. Names belong to the network namespace: containers with a network of their own
do not see each other's locks, so give each of them its own GPUs. Standard library only.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from paddlejob.local.machine.gpus import Gpu

EXCLUSIVE, SHARED = 0, range(1, 9)
"""The one exclusive slot of a GPU, and those of jobs that share it. It is free while none is taken."""


@dataclass(frozen=True)
class GpuLock:
    gpu: Gpu
    shared: bool
    _holder: socket.socket

    def release(self) -> None:
        self._holder.close()


def lock_gpus(gpus: Sequence[Gpu], count: int) -> list[GpuLock]:
    """Lock `count` free GPUs, or none."""
    locks: list[GpuLock] = []
    for position, gpu in enumerate(gpus):
        # Giving up early leaves a GPU to a job that needs it, where two jobs would otherwise both fail.
        if len(locks) == count or len(locks) + len(gpus) - position < count:
            break
        lock = _lock(gpu)
        if lock:
            locks.append(lock)
    return locks if len(locks) == count else release_locks(locks)


def share_gpus(gpus: Sequence[Gpu], count: int) -> list[GpuLock]:
    """Lock `count` different GPUs, or none: free ones first, then those that the fewest jobs share."""
    locks = [lock for gpu in gpus if (lock := _lock(gpu))]
    for lock in locks[count:]:
        lock.release()
    del locks[count:]
    for slot in SHARED:
        for gpu in gpus:
            if len(locks) < count and gpu not in {lock.gpu for lock in locks}:
                holder = _take(gpu, slot)
                locks += [GpuLock(gpu, True, holder)] if holder else []
    return locks if len(locks) == count else release_locks(locks)


def is_free(gpu: Gpu) -> bool:
    return not any(_is_taken(gpu, slot) for slot in (EXCLUSIVE, *SHARED))


def _lock(gpu: Gpu) -> GpuLock | None:
    holder = _take(gpu, EXCLUSIVE)
    if holder and any(_is_taken(gpu, slot) for slot in SHARED):
        holder.close()
        return None
    return GpuLock(gpu, False, holder) if holder else None


def _take(gpu: Gpu, slot: int) -> socket.socket | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(_name(gpu, slot))
    except OSError:
        holder.close()
        return None
    return holder


def _is_taken(gpu: Gpu, slot: int) -> bool:
    """Look without taking it, which could make another process fail that needs all GPUs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(_name(gpu, slot)) == 0


def _name(gpu: Gpu, slot: int) -> str:
    return f"\0paddlejob-gpu-{gpu.uuid}-{slot}"


def release_locks(locks: list[GpuLock]) -> list[GpuLock]:
    for lock in locks:
        lock.release()
    return []
