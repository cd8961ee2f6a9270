"""Which job holds how much of this machine. A job gets all that it requests at once, or it waits.

Each job's reservation is a file in its directory, and counts while the job has a runner.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from paddlejob.api.types import PaddleJob
from paddlejob.local.files import read_if_intact as read_json
from paddlejob.local.files import write_json
from paddlejob.local.machine.resources import GPU, Machine, format_quantity, of_job, of_pod
from paddlejob.local.store import JobFolder, Store
from paddlejob.locks import locked
from paddlejob.plan import names

FILE, LOCK = "claim.json", "claims.lock"


class Reservations:
    def __init__(self, store: Store, machine: Machine) -> None:
        self._store = store
        self._machine = machine

    def reserve(self, job: PaddleJob, folder: JobFolder, overcommit: bool) -> str:
        """Reserve all that the job requests; returns "", or a message that says what it waits for."""
        requested = of_job(job.spec)
        if not requested:
            return ""
        self._store.root.mkdir(parents=True, exist_ok=True)
        with locked(self._store.root / LOCK):
            others = self._others(folder)
            missing = "" if overcommit else self._missing(requested, others)
            if missing:
                return missing
            taken = {gpu for held in others.values() for gpus in held["gpus"].values() for gpu in gpus}
            gpus = self._assign_gpus(job, [gpu for gpu in self._machine.gpus if gpu not in taken])
            write_json(folder.path / FILE, {"asked": requested, "gpus": gpus})
        return ""

    def gpus(self, folder: JobFolder, pod: str) -> list[str]:
        reservation = read_json(folder.path / FILE) or {"gpus": {}}
        found: list[str] = reservation["gpus"].get(pod, [])
        return found

    def release(self, folder: JobFolder) -> None:
        (folder.path / FILE).unlink(missing_ok=True)

    def _others(self, own: JobFolder) -> dict[str, dict[str, Any]]:
        found = {
            folder.key[1]: read_json(folder.path / FILE)
            for folder in self._store.folders()
            if folder.key != own.key and folder.has_runner
        }
        return {name: reservation for name, reservation in found.items() if reservation}

    def _missing(self, requested: Counter[str], others: dict[str, dict[str, Any]]) -> str:
        for resource, amount in requested.items():
            capacity = self._machine.capacity(resource)
            held = {name: reservation["asked"].get(resource, 0) for name, reservation in others.items()}
            if capacity is not None and amount > capacity - sum(held.values()) + 1e-9:
                return _insufficient(resource, amount, capacity, held)
        return ""

    def _assign_gpus(self, job: PaddleJob, free: list[str]) -> dict[str, list[str]]:
        assigned = {}
        for role, spec in job.spec.roles.items():
            count = int(of_pod(spec.template["spec"])[GPU])
            for index in range(spec.replicas if count else 0):
                assigned[names.pod(job, role, index)], free = free[:count], free[count:]
        return assigned


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
