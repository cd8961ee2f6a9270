"""What replicas use: processes on this machine by /proc, pods by the metrics API where the cluster has one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.errors import KubeError

if TYPE_CHECKING:
    from paddlejob.client.targets.target import JobView
    from paddlejob.kube.client import Client

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
UTIME, STIME, RSS = 11, 12, 21
"""Fields of /proc/PID/stat after the name of the program, which may contain spaces."""
RETRY_SECONDS = 60.0
"""A cluster without the metrics API, or a user without permission, is asked again after this time."""
SHORTEST = 0.5
"""Seconds between two readings; below, the ticks of the kernel (10 ms) make the difference imprecise."""


@dataclass(frozen=True)
class Usage:
    cpu: float | None = None
    """CPUs in use; None until two readings are known."""
    memory: int | None = None
    """Bytes."""
    gpu: float | None = None
    """Percent of its GPUs, where the driver reports it."""
    gpu_memory: int | None = None
    """Bytes."""


class ProcessMeter:
    """CPU use is the difference of two readings, so the last one of each process is kept."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float, float | None]] = {}

    def read(self, pid: int) -> Usage | None:
        """The process and all its descendants; None if it has ended."""
        readings = [reading for one in (pid, *_descendants(pid)) if (reading := _reading(one))]
        if not readings:
            self._last.pop(pid, None)
            return None
        now, seconds = time.monotonic(), sum(cpu for cpu, _ in readings)
        before, seconds_before, cpu = self._last.get(pid, (0.0, 0.0, None))
        if not before:
            self._last[pid] = (now, seconds, None)
        elif now - before >= SHORTEST:
            cpu = max(0.0, seconds - seconds_before) / (now - before)
            self._last[pid] = (now, seconds, cpu)
        return Usage(cpu, sum(memory for _, memory in readings))


def _descendants(pid: int) -> Iterator[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _descendants(child)


def _reading(pid: int) -> tuple[float, int] | None:
    """Seconds of CPU time and bytes of memory."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return (int(fields[UTIME]) + int(fields[STIME])) / TICKS, int(fields[RSS]) * PAGE


class PodMeter:
    def __init__(self) -> None:
        self._retry_at = 0.0

    async def read(self, client: Client, view: JobView) -> dict[str, Usage]:
        from paddlejob.kube.resource import Resource

        if time.monotonic() < self._retry_at or not any(pod.state == "Running" for pod in view.pods):
            return {}
        pods, selector = Resource("metrics.k8s.io", "v1beta1", "pods"), f"{contract.LABEL_JOB}={view.job.name}"
        try:
            found = await client.list(pods, view.job.namespace, label_selector=selector)
        except KubeError:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return {}
        return {str(one["metadata"]["name"]): _pod_usage(one) for one in found}


def _pod_usage(obj: dict[str, Any]) -> Usage:
    from paddlejob.local.machine.resources import parse_quantity

    used = [one.get("usage") or {} for one in obj.get("containers") or []]
    cpu, memory = (sum(parse_quantity(one[name]) for one in used if name in one) for name in ("cpu", "memory"))
    return Usage(cpu, int(memory))
