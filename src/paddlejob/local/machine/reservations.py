"""Which job holds how much of this machine. What a job reserves at once it gets as a whole, or not at all.

CPUs and memory are counted among the jobs of one state directory: each job's reservation is a file in its directory,
and counts while the job has a runner. GPUs are locked for the whole machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from paddlejob.api.quantity import format_quantity, of_pod, of_replicas
from paddlejob.api.types import PaddleJob, Role, Slot
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.machine.gpu_locks import is_free, lock_gpus, release_locks, share_gpus
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.resources import Machine, kind_of
from paddlejob.local.state.files import read_if_intact, write_json
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.locks import locked
from paddlejob.plan import names

FILE, LOCK = "claim.json", "claims.lock"
ELSEWHERE = "jobs of other users or state directories"
Held = dict[str, dict[str, Any]]
"""The reservations of jobs, by the name to show for each."""


class Reservations:
    def __init__(self, store: JobStore, machine: Machine) -> None:
        self._store = store
        self._machine = machine

    def reserve(
        self,
        job: PaddleJob,
        folder: JobFolder,
        allocation: Allocation,
        overcommit: bool,
        slots: Collection[Slot],
    ) -> str:
        """Reserve all that these replicas request, instead of what the job had before.

        Returns "", or a message that says what they wait for; then the job keeps what it had.
        """
        requested = of_replicas(job.spec, slots)
        if not requested:
            return ""
        self._store.root.mkdir(parents=True, exist_ok=True)
        with locked(self._store.root / LOCK):
            others = self._others(folder)
            missing = self._missing(requested, others, overcommit) or self._assign_devices(
                job, slots, allocation, others, overcommit
            )
            if missing:
                return missing
            allocation.keep_gpus_of({names.pod(job, *slot) for slot in slots})
            gpus = {pod: [gpu.uuid for gpu in allocation.gpus(pod)] for pod in allocation.gpu_locks}
            write_json(folder.path / FILE, {"asked": requested, "gpus": gpus})
        return ""

    def release(self, folder: JobFolder) -> None:
        (folder.path / FILE).unlink(missing_ok=True)

    def _others(self, own: JobFolder) -> Held:
        return held_by_jobs(self._store, other_than=own)

    def _missing(self, requested: Counter[str], others: Held, overcommit: bool) -> str:
        """Which resource does not suffice. Overcommitting never makes GPUs that do not exist."""
        for resource, amount in requested.items():
            capacity = self._machine.capacity(resource)
            is_device = bool(kind_of(resource))
            held = {} if is_device else _held(resource, others)
            if capacity is None or (overcommit and not is_device):
                continue
            if amount > capacity - sum(held.values()) + 1e-9:
                return _insufficient(resource, amount, capacity, held)
        return ""

    def _assign_devices(
        self, job: PaddleJob, slots: Collection[Slot], allocation: Allocation, others: Held, overcommit: bool
    ) -> str:
        """Lock the devices that pods lack, of one kind after the other; if one kind does not suffice, none."""
        before = {pod: len(locks) for pod, locks in allocation.gpu_locks.items()}
        for kind, resource in {kind_of(name): name for name in of_replicas(job.spec, slots)}.items():
            counts = _devices_of_pods(job, slots, kind) if kind else None
            missing = self._assign(resource, counts, allocation, others, overcommit) if counts else ""
            if missing:
                for pod, locks in allocation.gpu_locks.items():
                    release_locks(locks[before.get(pod, 0) :])
                    del locks[before.get(pod, 0) :]
                return missing
        return ""

    def _assign(
        self, resource: str, counts: Counter[str], allocation: Allocation, others: Held, overcommit: bool
    ) -> str:
        """Devices that a pod holds stay with it, because its process may still run."""
        kind = kind_of(resource)
        held = {pod: sum(gpu.kind == kind for gpu in allocation.gpus(pod)) for pod in counts}
        lacking = {pod: max(0, count - held[pod]) for pod, count in counts.items()}
        count = sum(lacking.values())
        own = {gpu for pod in allocation.gpu_locks for gpu in allocation.gpus(pod)}
        candidates = [gpu for gpu in self._machine.of_kind(kind) if gpu not in own]
        locks = lock_gpus(candidates, count)
        if len(locks) < count and overcommit:
            locks = share_gpus(candidates, count)
        if len(locks) < count:
            return self._in_use(resource, sum(counts.values()), candidates, others)
        for pod, more in lacking.items():
            allocation.gpu_locks.setdefault(pod, []).extend(locks[:more])
            locks = locks[more:]
        return ""

    def _in_use(self, resource: str, requested: int, candidates: list[Gpu], others: Held) -> str:
        held = held_devices(kind_of(resource), others)
        elsewhere = sum(not is_free(gpu) for gpu in candidates) - sum(held.values())
        capacity = len(self._machine.of_kind(kind_of(resource)))
        return _insufficient(resource, requested, capacity, held | {ELSEWHERE: max(elsewhere, 0)})


def held_by_jobs(store: JobStore, other_than: JobFolder | None = None) -> Held:
    """The reservations of all jobs that this machine runs."""
    found = {
        _shown(folder): read_if_intact(folder.path / FILE)
        for folder in store.folders()
        if not (other_than and folder.key == other_than.key) and folder.runs_here
    }
    return {name: reservation for name, reservation in found.items() if reservation}


def gpus_of_pods(folder: JobFolder) -> dict[str, list[str]]:
    """The UUIDs of the GPUs that each pod of a job holds."""
    found: dict[str, list[str]] = (read_if_intact(folder.path / FILE) or {}).get("gpus") or {}
    return found


def _devices_of_pods(job: PaddleJob, slots: Collection[Slot], kind: str) -> Counter[str]:
    counts = {
        role: int(sum(amount for name, amount in of_pod(spec.template["spec"]).items() if kind_of(name) == kind))
        for role, spec in job.spec.roles.items()
    }
    return Counter({names.pod(job, role, index): counts[role] for role, index in _ordered(slots) if counts[role]})


def _ordered(slots: Collection[Slot]) -> list[Slot]:
    """In the order in which pods are created."""
    return sorted(slots, key=lambda slot: ([*Role].index(slot[0]), slot[1]))


def _shown(folder: JobFolder) -> str:
    namespace, name = folder.key
    return name if namespace == "default" else f"{namespace}/{name}"


def held_devices(kind: str, others: Held) -> dict[str, float]:
    """How many devices of a kind each job holds, by whatever name it requested them."""
    return {
        name: sum(amount for resource, amount in reservation["asked"].items() if kind_of(resource) == kind)
        for name, reservation in others.items()
    }


def _held(resource: str, others: Held) -> dict[str, float]:
    return {name: reservation["asked"].get(resource, 0) for name, reservation in others.items()}


def _insufficient(resource: str, amount: float, capacity: float, held: dict[str, float]) -> str:
    holders = [f"{name} ({format_quantity(resource, part)})" for name, part in held.items() if part]
    remedy = (
        f"other jobs hold {', '.join(holders)}; the job starts when they have released enough"
        if holders
        else "lower requests or replicas"
    )
    return (
        f"insufficient {resource}: the job requests {format_quantity(resource, amount)} and this machine has "
        f"{format_quantity(resource, capacity)}; {remedy}"
    )
