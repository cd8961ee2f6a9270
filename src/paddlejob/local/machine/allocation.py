"""What one job holds on this machine: a block of ports, and the resources that it requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from paddlejob.local.machine.ports import PortBlock


@dataclass
class Allocation:
    ports: PortBlock | None = None
    resources: Counter[str] | None = None
    """What is reserved for the job, or None before that."""

    @property
    def port(self) -> int | None:
        """The first port of the job's pods, once it is known."""
        return self.ports.first if self.ports else None

    def clear(self) -> None:
        self.resources = None
        if self.ports:
            self.ports.close()
            self.ports = None
