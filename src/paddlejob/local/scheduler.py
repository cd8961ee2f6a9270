"""Binds pending pods to this machine: all pods of a job at once, or none while the job's requests do not fit.

Of an elastic job it binds as many workers as fit, but none while fewer than `worker.requests` do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from paddlejob.api.quantity import of_replicas
from paddlejob.api.types import PaddleJob, Role, Slot
from paddlejob.local.job import LocalJob
from paddlejob.local.machine.devices import environment
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine
from paddlejob.local.pod import LocalPod
from paddlejob.local.state.store import JobStore
from paddlejob.plan import indexes
from paddlejob.plan.size import fewest_workers, is_resizable
from paddlejob.plan.world import UNSCHEDULABLE

GPU_SHARED = "GPUShared"


class Scheduler:
    def __init__(self, store: JobStore, machine: Machine) -> None:
        self._machine = machine
        self._reservations = Reservations(store, machine)

    def reserve_ports(self, local: LocalJob) -> None:
        """Before the first pod is created: the port is part of its environment."""
        if local.allocation.ports is None:
            local.allocation.ports = PortBlock()

    def schedule(self, local: LocalJob, job: PaddleJob) -> None:
        """Bind every pod that is not bound yet and fits, and mark the others as unschedulable."""
        missing = self._reserve(local, job)
        for pod in local.unbound_pods():
            if (pod.seen.role, pod.seen.index) in local.allocation.slots:
                self._bind(local, pod)
            elif pod.seen.message != missing:
                local.update(pod, reason=UNSCHEDULABLE, message=missing)

    def release(self, local: LocalJob) -> None:
        """Give back all that a job holds."""
        local.allocation.clear()
        self._reservations.release(local.folder)

    def _reserve(self, local: LocalJob, job: PaddleJob) -> str:
        """Reserve for the largest part of the job that fits, if any does; returns what the rest waits for."""
        first_missing = ""
        for slots in _parts(local, job):
            missing = self._reserve_for(local, job, slots)
            if not missing:
                return first_missing
            first_missing = first_missing or missing
        local.allocation.slots, local.allocation.resources = frozenset(), None
        return first_missing

    def _reserve_for(self, local: LocalJob, job: PaddleJob, slots: frozenset[Slot]) -> str:
        allocation, requested = local.allocation, of_replicas(job.spec, slots)
        if allocation.slots == slots and allocation.resources == requested:
            return ""
        missing = self._reservations.reserve(job, local.folder, allocation, local.options.overcommit, slots)
        if missing:
            return missing
        allocation.slots, allocation.resources = slots, requested
        if allocation.shared_gpus:
            self._report_shared_gpus(local)
        return ""

    def _report_shared_gpus(self, local: LocalJob) -> None:
        shared = ", ".join(f"{gpu.kind.upper()} {gpu.visible_as} ({gpu.uuid})" for gpu in local.allocation.shared_gpus)
        message = f"{shared}: also used by other jobs, because of --overcommit; without it, the job waits for free GPUs"
        local.folder.add_event(time.time(), GPU_SHARED, message, warning=True)

    def _bind(self, local: LocalJob, pod: LocalPod) -> None:
        if self._machine.gpus:
            pod.gpus = local.allocation.gpus(pod.seen.name)
            pod.device_variables = environment(pod.gpus, self._machine.gpus)
        local.update(pod, node=self._machine.name, reason="", message="")


def _parts(local: LocalJob, job: PaddleJob) -> Iterator[frozenset[Slot]]:
    """The parts of a job that resources may be reserved for, the largest first."""
    if not is_resizable(job):
        yield frozenset(job.spec.slots)
        return
    existing = {(pod.seen.role, pod.seen.index) for pod in local.pods.values()}
    members = indexes.parse(job.status.role(Role.WORKER).members) or range(job.spec.roles[Role.WORKER].replicas)
    kept = local.allocation.slots & (existing | {(Role.WORKER, index) for index in members})
    servers = {slot for slot in job.spec.slots if slot[0] is not Role.WORKER}
    workers = sorted(slot for slot in existing - kept if slot[0] is Role.WORKER)
    for count in range(len(workers), -1, -1):
        part = kept | servers | set(workers[:count])
        if len(part - servers) >= fewest_workers(job):
            yield frozenset(part)
