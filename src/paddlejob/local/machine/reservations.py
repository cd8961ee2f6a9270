"""Who holds how much of this machine. A job is given all it asks for at once, or waits: no two jobs wait half-placed.

Each job's claim is a file beside it, and counts while a process lives that runs the job.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from paddlejob.api.types import PaddleJob
from paddlejob.local.files import locked, read_json, write_json
from paddlejob.local.machine.resources import GPU, Machine, of_job, of_pod, written
from paddlejob.local.store import JobFolder, Store
from paddlejob.plan import names

CLAIM = "claim.json"


class Reservations:
    def __init__(self, store: Store, machine: Machine) -> None:
        self._store = store
        self._machine = machine

    def take(self, job: PaddleJob, folder: JobFolder, overcommit: bool) -> str:
        """Nothing where the job has all it asks for now; else what it waits for, in words."""
        wanted = of_job(job.spec)
        if not wanted:
            return ""
        self._store.root.mkdir(parents=True, exist_ok=True)
        with locked(self._store.root / "claims.lock"):
            others = self._others(folder)
            missing = "" if overcommit else self._missing(wanted, others)
            if missing:
                return missing
            taken = {gpu for claim in others.values() for gpus in claim["gpus"].values() for gpu in gpus}
            gpus = self._share_out(job, [gpu for gpu in self._machine.gpus if gpu not in taken])
            write_json(folder.path / CLAIM, {"asked": wanted, "gpus": gpus})
        return ""

    def gpus(self, folder: JobFolder, pod: str) -> list[str]:
        claim = read_json(folder.path / CLAIM) or {"gpus": {}}
        found: list[str] = claim["gpus"].get(pod, [])
        return found

    def release(self, folder: JobFolder) -> None:
        (folder.path / CLAIM).unlink(missing_ok=True)

    def _others(self, own: JobFolder) -> dict[str, dict[str, Any]]:
        claims = {
            folder.key[1]: read_json(folder.path / CLAIM)
            for folder in self._store.folders()
            if folder.key != own.key and folder.hosted
        }
        return {name: claim for name, claim in claims.items() if claim}

    def _missing(self, wanted: Counter[str], others: dict[str, dict[str, Any]]) -> str:
        for resource, asked in wanted.items():
            there = self._machine.has(resource)
            held = {name: claim["asked"].get(resource, 0) for name, claim in others.items()}
            if there is not None and asked > there - sum(held.values()) + 1e-9:
                holders = ", ".join(f"{name} ({written(resource, much)})" for name, much in held.items() if much)
                return (
                    f"the job asks for {written(resource, asked)} of {resource}, and of the "
                    f"{written(resource, there)} here these jobs hold some: {holders or 'none'}"
                )
        return ""

    def _share_out(self, job: PaddleJob, free: list[str]) -> dict[str, list[str]]:
        shares = {}
        for role, spec in job.spec.roles.items():
            count = int(of_pod(spec.template["spec"])[GPU])
            for index in range(spec.replicas if count else 0):
                shares[names.pod(job, role, index)], free = free[:count], free[count:]
        return shares
