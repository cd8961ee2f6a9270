"""What may have cost a job a restart or a disruption. A job that is created again counts from zero."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

RESTART, DISRUPTION, IGNORED = "restarts", "disruptions", "ignoredFailures"
"""Named like the counters that they raise."""
LATE = 60.0
"""Seconds after which a fault can still hit a job that was created in the meantime: a lost node takes that long."""


@dataclass
class Ledger:
    now: Callable[[], float] = time.monotonic
    lives: Counter[str] = field(default_factory=Counter)
    """How often each job was created."""
    _born: dict[str, float] = field(default_factory=dict)
    _causes: list[tuple[float, str, str]] = field(default_factory=list)

    def begin(self, job: str) -> None:
        self.lives[job] += 1
        self._born[job] = self.now()

    def blame(self, cause: str, job: str, times: int = 1) -> None:
        self._causes += [(self.now(), job, cause)] * times

    def causes(self, job: str) -> Counter[str]:
        since = self._born.get(job, 0.0) - LATE
        return Counter(cause for at, whose, cause in self._causes if whose == job and at >= since)

    def unexplained(self, job: str, status: dict[str, Any]) -> list[str]:
        """A restart needs a program that a fault ended, and any counter a fault of some kind."""
        causes = self.causes(job)
        counted = Counter({name: status.get(name, 0) for name in (RESTART, DISRUPTION, IGNORED)})
        wrong = [
            f"{job} counts {counted[name]} {name}, but only {causes[name]} faults explain them"
            for name in (RESTART, IGNORED)
            if counted[name] > causes[name]
        ]
        if counted.total() > causes.total():
            numbers = ", ".join(f"{count} {name}" for name, count in counted.items())
            wrong.append(f"{job} counts {numbers} after {causes.total()} faults")
        return wrong
