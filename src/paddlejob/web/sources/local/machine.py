"""What this machine has, how much of it jobs have reserved, and how much is in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

from paddlejob.errors import PaddleJobError
from paddlejob.local.machine.reservations import held_by_jobs
from paddlejob.local.machine.resources import GPU, Machine, this_machine
from paddlejob.local.state.store import Store
from paddlejob.web.sources.local.gpus import GpuMeter
from paddlejob.web.views.machine import MachineInfo, Resource

IDLE, IOWAIT = 3, 4
"""Fields of the first line of /proc/stat in which no CPU works."""


class MachineMeter:
    def __init__(self, store: Store, gpus: GpuMeter) -> None:
        self._store = store
        self._gpus = gpus
        self._machine: Machine | None = None
        self._last = (0.0, 0.0)
        self._cpus = 0.0

    def read(self) -> MachineInfo:
        try:
            machine = self._machine = self._machine or this_machine()
        except PaddleJobError as error:
            return MachineInfo("local", "this machine", str(error))
        holders = held_by_jobs(self._store)
        used = {"cpu": self._busy_cpus(), "memory": _memory_in_use(), GPU: None}
        names = ["cpu", "memory", *([GPU] if machine.gpus else [])]
        resources = []
        for name in names:
            held = {job: float(one["asked"].get(name) or 0) for job, one in holders.items() if one["asked"].get(name)}
            capacity = float(machine.capacity(name) or 0)
            resources.append(Resource(name, capacity, sum(held.values()), used[name], held))
        gpus = self._gpus.table(machine.gpus, holders)
        return MachineInfo("local", machine.name, machine.gpu_note, resources, gpus)

    def _busy_cpus(self) -> float:
        """Since the last reading that is at least half a second old."""
        now, busy = time.monotonic(), _busy_seconds()
        before, busy_before = self._last
        if now - before >= 0.5:
            self._cpus = (busy - busy_before) / (now - before) if before else 0.0
            self._last = (now, busy)
        return max(0.0, self._cpus)


def _busy_seconds() -> float:
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    return sum(int(value) for index, value in enumerate(fields) if index not in (IDLE, IOWAIT)) / os.sysconf(
        "SC_CLK_TCK"
    )


def _memory_in_use() -> float:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return float(total - available)
