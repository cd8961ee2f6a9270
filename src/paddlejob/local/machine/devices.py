"""The devices of this machine: GPUs of NVIDIA as their driver lists them, other vendors' by their device files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from paddlejob.api.devices import BY_KIND, DEVICES, Device
from paddlejob.api.types import DeviceKind
from paddlejob.local.machine import gpus
from paddlejob.local.machine.gpus import Gpu, GpuList


def find_devices(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> GpuList:
    """All that jobs of this user may use; variables such as XPU_VISIBLE_DEVICES restrict them."""
    given = os.environ if environ is None else environ
    nvidia = gpus.find_gpus(given)
    others = (one for device in DEVICES if device.kind is not DeviceKind.GPU for one in _by_files(device, given, root))
    return GpuList((*nvidia.gpus, *others), nvidia.note)


def environment(own: Sequence[Gpu], present: Sequence[Gpu]) -> dict[str, str]:
    """The variables with which a program sees its own devices, and no other of those that are present."""
    found: dict[str, str] = {}
    for kind in dict.fromkeys(gpu.kind for gpu in present):
        some = [gpu for gpu in own if gpu.kind == kind]
        if kind == DeviceKind.GPU:
            found |= gpus.environment(some)
        else:
            device = BY_KIND[DeviceKind(kind)]
            listed = ",".join(gpu.visible_as for gpu in some)
            found |= {variable: listed for variable in (device.visible, device.newer) if variable}
    return found


def _by_files(device: Device, environ: Mapping[str, str], root: Path) -> Iterator[Gpu]:
    """Programs get the position among the files: drivers number those that a container has from 0."""
    if not (root / device.driver[1:]).exists():
        return
    files = sorted(root.glob(device.files[1:]), key=lambda path: int(re.sub(r"\D", "", path.name)))
    allowed = environ.get(device.newer, environ.get(device.visible))
    for index, path in enumerate(files):
        if allowed is None or str(index) in re.split(r"\s*,\s*", allowed.strip()):
            yield Gpu(f"/{path.relative_to(root)}", str(index), device.kind.value)
