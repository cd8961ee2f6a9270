"""How busy the GPUs of this machine are, where the driver tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from paddlejob.local.machine.gpus import DRIVER, run_with_timeout

TIMEOUT = 5.0


@dataclass(frozen=True)
class GpuUse:
    uuid: str
    name: str
    pci: list[int]
    """Domain, bus and device."""
    percent: float
    """Of the last second or less, as the driver counts."""
    memory: int
    capacity: int
    """Bytes."""


def read_gpu_use() -> dict[str, GpuUse]:
    """By UUID; empty where no driver answers."""
    try:
        done = run_with_timeout([sys.executable, "-I", "-S", str(DRIVER), "use"], TIMEOUT, os.environ)
        found = [] if done.returncode else json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return {one["uuid"]: GpuUse(**one) for one in found}
