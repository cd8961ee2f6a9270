"""How busy the GPUs of this machine are, read every few seconds."""

from __future__ import annotations

import threading
import time

from paddlejob.local.machine.gpu_use import GpuUse, read_gpu_use

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
