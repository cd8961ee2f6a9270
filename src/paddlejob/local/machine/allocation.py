"""One job's share of this machine: CPUs, memory, GPUs and ports as a whole, and an address for each pod."""

from __future__ import annotations

from collections import Counter

from paddlejob.api.types import PaddleJob
from paddlejob.local.machine.addresses import Addresses
from paddlejob.local.machine.ports import PortBlock
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine, of_job
from paddlejob.local.store import JobFolder


class Allocation:
    def __init__(
        self, folder: JobFolder, machine: Machine, addresses: Addresses, claims: Reservations, overcommit: bool
    ) -> None:
        self.machine = machine
        self.addresses = addresses
        self._folder = folder
        self._claims = claims
        self._overcommit = overcommit
        self._granted: Counter[str] | None = None
        self._ports: PortBlock | None = None

    @property
    def first_port(self) -> int:
        """Where the job's pods listen."""
        if self._ports is None:
            self._ports = PortBlock()
        return self._ports.first

    def claim(self, job: PaddleJob) -> str:
        """Nothing where the job has all it asks for; else what it waits for, in words."""
        wanted = of_job(job.spec)
        if self._granted == wanted:
            return ""
        missing = self._claims.take(job, self._folder, self._overcommit)
        self._granted = None if missing else wanted
        return missing

    def gpus(self, pod: str) -> list[str] | None:
        """Those of a pod; None on a machine without any, where nothing need be said."""
        return self._claims.gpus(self._folder, pod) if self.machine.gpus else None

    def give_back(self) -> None:
        self._granted = None
        self._claims.release(self._folder)
        self.close()

    def close(self) -> None:
        if self._ports is not None:
            self._ports.close()
            self._ports = None
