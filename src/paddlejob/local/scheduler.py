"""Binds pending pods to this machine: all pods of a job at once, or none while the job's requests do not fit.

Of an elastic job it binds as many workers as fit, but none while fewer than `worker.requests` do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from paddlejob.api.types import PaddleJob, Role, Slot
from paddlejob.local.machine.addresses import Addresses
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine, of_replicas
from paddlejob.local.objects import JobObjects
from paddlejob.local.pod import LocalPod
from paddlejob.local.state.store import Store
from paddlejob.plan import indexes, times
from paddlejob.plan.size import fewest_workers, is_resizable
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
        """Bind every pod that has no address yet and fits, and mark the others as unschedulable."""
        unbound = objects.unbound_pods()
        if not unbound:
            return
        missing = self._reserve(objects, job, overcommit)
        for pod in unbound:
            if (pod.seen.role, pod.seen.index) in objects.allocation.slots:
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
        """Reserve for the largest part of the job that fits, if any does; returns what the rest waits for."""
        first_missing = ""
        for slots in _parts(objects, job):
            missing = self._reserve_for(objects, job, slots, overcommit)
            if not missing:
                return first_missing
            first_missing = first_missing or missing
        objects.allocation.slots, objects.allocation.resources = frozenset(), None
        return first_missing

    def _reserve_for(self, objects: JobObjects, job: PaddleJob, slots: frozenset[Slot], overcommit: bool) -> str:
        allocation, requested = objects.allocation, of_replicas(job.spec, slots)
        if allocation.slots == slots and allocation.resources == requested:
            return ""
        missing = self._reservations.reserve(job, objects.folder, allocation, overcommit, slots)
        if missing:
            return missing
        allocation.slots, allocation.resources = slots, requested
        if allocation.shared_gpus:
            self._report_shared_gpus(objects)
        return ""

    def _report_shared_gpus(self, objects: JobObjects) -> None:
        shared = ", ".join(f"GPU {gpu.visible_as} ({gpu.uuid})" for gpu in objects.allocation.shared_gpus)
        message = f"{shared}: also used by other jobs, because of --overcommit; without it, the job waits for free GPUs"
        event = {"time": times.format(time.time()), "reason": GPU_SHARED, "message": message, "warning": True}
        objects.folder.add_event(event)

    def _bind(self, objects: JobObjects, pod: LocalPod) -> None:
        if self._machine.gpus:
            pod.gpus = objects.allocation.gpus(pod.seen.name)
        objects.update(pod, address=self._addresses.take(), node=self._machine.name, reason="", message="")


def _parts(objects: JobObjects, job: PaddleJob) -> Iterator[frozenset[Slot]]:
    """The parts of a job that resources may be reserved for, the largest first."""
    if not is_resizable(job):
        yield frozenset(job.spec.slots)
        return
    existing = {(pod.seen.role, pod.seen.index) for pod in objects.pods.values()}
    members = indexes.parse(job.status.role(Role.WORKER).members) or range(job.spec.roles[Role.WORKER].replicas)
    kept = objects.allocation.slots & (existing | {(Role.WORKER, index) for index in members})
    servers = {slot for slot in job.spec.slots if slot[0] is not Role.WORKER}
    workers = sorted(slot for slot in existing - kept if slot[0] is Role.WORKER)
    for count in range(len(workers), -1, -1):
        part = kept | servers | set(workers[:count])
        if len(part - servers) >= fewest_workers(job):
            yield frozenset(part)
