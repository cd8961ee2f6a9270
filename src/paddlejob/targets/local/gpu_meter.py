"""The GPUs of this machine: how busy each is, read every few seconds, and which replica holds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from paddlejob.local.machine.gpu_use import GpuUse, read_gpu_use
from paddlejob.local.machine.gpus import Gpu
from paddlejob.targets.capacity import GpuInfo

PAUSE = 3.0
"""A reading starts a process of about 0.1 s, so that a driver that hangs does not stop its caller."""


class GpuMeter:
    def __init__(self) -> None:
        self._read_at = -PAUSE
        self._last: dict[str, GpuUse] = {}
        self._lock = threading.Lock()

    def read(self) -> dict[str, GpuUse]:
        """By UUID; empty where no driver answers."""
        with self._lock:
            if time.monotonic() - self._read_at >= PAUSE:
                self._last = read_gpu_use()
                self._read_at = time.monotonic()
            return self._last

    def use_of(self, uuids: list[str]) -> tuple[float | None, int | None]:
        """The percentage of these GPUs on average, and the bytes of their memory; None if the driver reports none."""
        found = [use for uuid in uuids if (use := self.read().get(uuid))]
        if not found:
            return None, None
        return sum(use.percent for use in found) / len(found), sum(use.memory for use in found)

    def table(self, gpus: tuple[Gpu, ...], holders: Mapping[str, Any]) -> list[GpuInfo]:
        held = {
            uuid: f"{job} · {pod}"
            for job, one in holders.items()
            for pod, uuids in one["gpus"].items()
            for uuid in uuids
        }
        known = self.read() if gpus else {}
        return [_info(gpu, known.get(gpu.uuid), held.get(gpu.uuid, "")) for gpu in gpus]


def _info(gpu: Gpu, use: GpuUse | None, holder: str) -> GpuInfo:
    if use is None:
        return GpuInfo(gpu.visible_as, gpu.uuid, holder)
    return GpuInfo(gpu.visible_as, use.name, holder, use.percent, use.memory, use.capacity)
