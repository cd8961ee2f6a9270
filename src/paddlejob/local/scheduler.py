"""Binds pending pods to this machine: all pods of a job at once, or none while the job's requests do not fit."""

from __future__ import annotations

import time

from paddlejob.api.types import PaddleJob
from paddlejob.local.machine.addresses import Addresses
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine, of_job
from paddlejob.local.objects import JobObjects
from paddlejob.local.pod import LocalPod
from paddlejob.local.state.store import Store
from paddlejob.plan import times
from paddlejob.plan.world import UNSCHEDULABLE

GPU_SHARED = "GPUShared"


class Scheduler:
    def __init__(self, store: Store, machine: Machine) -> None:
        self._machine = machine
        self._reservations = Reservations(store, machine)
        self._addresses = Addresses()

    def reserve_ports(self, objects: JobObjects) -> None:
        """Before the first pod is created: the port is part of its environment."""
        if objects.allocation.ports is None:
            objects.allocation.ports = PortBlock()

    def schedule(self, objects: JobObjects, job: PaddleJob, *, overcommit: bool = False) -> None:
        """Bind every pod that has no address yet, or mark each of them as unschedulable."""
        unbound = objects.unbound_pods()
        missing = self._reserve(objects, job, overcommit) if unbound else ""
        for pod in unbound:
            if not missing:
                self._bind(objects, pod)
            elif pod.seen.message != missing:
                objects.update(pod, reason=UNSCHEDULABLE, message=missing)

    def unbind(self, pod: LocalPod) -> None:
        """Give the pod's address back; what is reserved for its job stays reserved."""
        if pod.seen.address:
            self._addresses.give_back(pod.seen.address)

    def release(self, objects: JobObjects) -> None:
        """Give back all that a job holds."""
        objects.allocation.clear()
        self._reservations.release(objects.folder)

    def close(self) -> None:
        self._addresses.close()

    def _reserve(self, objects: JobObjects, job: PaddleJob, overcommit: bool) -> str:
        requested = of_job(job.spec)
        if objects.allocation.resources == requested:
            return ""
        missing = self._reservations.reserve(job, objects.folder, objects.allocation, overcommit)
        objects.allocation.resources = None if missing else requested
        if objects.allocation.shared_gpus and not missing:
            self._report_shared_gpus(objects)
        return missing

    def _report_shared_gpus(self, objects: JobObjects) -> None:
        shared = ", ".join(f"GPU {gpu.visible_as} ({gpu.uuid})" for gpu in objects.allocation.shared_gpus)
        message = f"{shared}: also used by other jobs, because of --overcommit; without it, the job waits for free GPUs"
        event = {"time": times.format(time.time()), "reason": GPU_SHARED, "message": message, "warning": True}
        objects.folder.add_event(event)

    def _bind(self, objects: JobObjects, pod: LocalPod) -> None:
        if self._machine.gpus:
            pod.gpus = objects.allocation.gpus(pod.seen.name)
        objects.update(pod, address=self._addresses.take(), node=self._machine.name, reason="", message="")
