"""What this machine has, how much of it jobs have reserved, and how much is in use."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from paddlejob.api.devices import BY_KIND
from paddlejob.api.types import DeviceKind
from paddlejob.errors import PaddleJobError
from paddlejob.local.machine.reservations import gpus_of_pods, held_by_jobs, held_devices
from paddlejob.local.machine.resources import Machine, this_machine
from paddlejob.local.state.store import JobStore
from paddlejob.targets.capacity import MachineInfo, Resource
from paddlejob.targets.local.gpu_meter import GpuMeter
from paddlejob.targets.local.process_meter import ProcessMeter
from paddlejob.targets.views import JobView, Usage

IDLE, IOWAIT = 3, 4
"""Fields of the first line of /proc/stat in which no CPU works."""


class MachineMeter:
    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._gpus = GpuMeter()
        self._processes = ProcessMeter()
        self._machine: Machine | None = None
        self._last = (0.0, 0.0)
        self._cpus = 0.0

    def read(self) -> MachineInfo:
        try:
            machine = self._machine = self._machine or this_machine()
        except PaddleJobError as error:
            return MachineInfo("local", "this machine", str(error))
        holders = held_by_jobs(self._store)
        resources = []
        for name, used in {"cpu": self._busy_cpus(), "memory": memory_in_use()}.items():
            held = {job: float(one["asked"].get(name) or 0) for job, one in holders.items() if one["asked"].get(name)}
            resources.append(Resource(name, float(machine.capacity(name) or 0), sum(held.values()), used, held))
        for kind in dict.fromkeys(gpu.kind for gpu in machine.gpus):
            held = {job: count for job, count in held_devices(kind, holders).items() if count}
            name = BY_KIND[DeviceKind(kind)].resource
            resources.append(Resource(name, float(len(machine.of_kind(kind))), sum(held.values()), None, held))
        gpus = self._gpus.table(machine.gpus, holders)
        return MachineInfo("local", machine.name, machine.gpu_note, resources, gpus)

    def usage(self, view: JobView) -> dict[str, Usage]:
        """What the running replicas of a job use, by the name of the pod."""
        used = {pod.name: usage for pod in view.pods if pod.pid and (usage := self._processes.read(pod.pid))}
        held = gpus_of_pods(self._store.folder((view.job.namespace, view.job.name))) if used else {}
        for name in used.keys() & held.keys():
            percent, memory = self._gpus.use_of(held[name])
            used[name] = replace(used[name], gpu=percent, gpu_memory=memory)
        return used

    def _busy_cpus(self) -> float:
        """Since the last reading that is at least half a second old."""
        now, busy = time.monotonic(), busy_seconds()
        before, busy_before = self._last
        if now - before >= 0.5:
            self._cpus = (busy - busy_before) / (now - before) if before else 0.0
            self._last = (now, busy)
        return max(0.0, self._cpus)


def busy_seconds() -> float:
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    return sum(int(value) for index, value in enumerate(fields) if index not in (IDLE, IOWAIT)) / os.sysconf(
        "SC_CLK_TCK"
    )


def memory_in_use() -> float:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return float(total - available)
