"""The GPUs of this machine: how busy each is, and which replica holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlejob.client.watch.gpus import GpuMeter
from paddlejob.local.machine.gpu_use import GpuUse
from paddlejob.local.machine.gpus import Gpu
from paddlejob.web.views.machine import GpuInfo


class GpuTable(GpuMeter):
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
