"""What the processes of this machine use of its NVIDIA GPUs, where the driver reports it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from paddlejob.local.machine.gpus import DEVICE_FILES, DRIVER, VISIBLE

Gpus = list[dict[str, Any]]


class GpuMeter:
    """Reads from a process of its own, because a driver may hang. It ends with this object."""

    def __init__(self, command: list[str] | None = None) -> None:
        self._command = command or [sys.executable, str(DRIVER), "usage"]
        self._has_driver = command is not None or any(path.exists() for path in DEVICE_FILES)
        self._latest: list[Gpus] = []
        self._started = False

    def read(self, pid: int) -> tuple[float, int] | None:
        """Percent and bytes in use of the GPUs that a process may use; None if that is not known."""
        if not self._has_driver:
            return None
        self._start()
        visible = _visible(pid)
        found = [gpu for index, gpu in enumerate(self._gpus()) if {str(index), gpu["uuid"]} & visible]
        if not found:
            return None
        return sum(gpu["percent"] for gpu in found) / len(found), sum(gpu["memory"] for gpu in found)

    def _gpus(self) -> Gpus:
        return self._latest[-1] if self._latest else []

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        weakref.finalize(self, process.kill)
        threading.Thread(target=_keep_latest, args=(process, self._latest), daemon=True).start()


def _keep_latest(process: subprocess.Popen[str], latest: list[Gpus]) -> None:
    assert process.stdout
    for line in process.stdout:
        latest[:] = [json.loads(line)]
    latest.clear()
    process.wait()


def _visible(pid: int) -> set[str]:
    """The entries of CUDA_VISIBLE_DEVICES: indexes in PCI order, or UUIDs."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return set()
    for entry in environment.split("\0"):
        name, _, value = entry.partition("=")
        if name == VISIBLE:
            return {one.strip() for one in value.split(",")} - {""}
    return set()
