"""What may have cost a job a restart or a disruption. Each cause explains one, and only for a while."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

RESTART, DISRUPTION, IGNORED = "restarts", "disruptions", "ignoredFailures"
"""Named like the counters that they raise."""
EXPLAINED_BY = {
    RESTART: (RESTART,),
    IGNORED: (IGNORED,),
    # A program that was killed may be noticed as a pod that is gone.
    DISRUPTION: (DISRUPTION, RESTART, IGNORED),
}
LATE = 120.0
"""Seconds after which a fault explains nothing any more: a lost node is noticed late, and its pods end even later."""


@dataclass(frozen=True)
class Cause:
    at: float
    job: str
    counter: str


@dataclass
class Ledger:
    now: Callable[[], float] = time.monotonic
    lives: Counter[str] = field(default_factory=Counter)
    """How often each job was created."""
    _counted: dict[str, Counter[str]] = field(default_factory=dict)
    _causes: list[Cause] = field(default_factory=list)

    def begin(self, job: str) -> None:
        """The job was created, again perhaps: it counts from zero."""
        self.lives[job] += 1
        self._counted[job] = Counter()

    def blame(self, counter: str, job: str, times: int = 1) -> None:
        self._causes += [Cause(self.now(), job, counter)] * times

    def settle(self, job: str, status: dict[str, Any]) -> list[str]:
        """Return what the job counts since the last time and no fault explains."""
        before, wrong = self._counted.get(job, Counter()), []
        self._causes = [cause for cause in self._causes if self.now() - cause.at <= LATE]
        for counter in EXPLAINED_BY:
            more = status.get(counter, 0) - before[counter]
            unexplained = sum(not self._explain(job, counter) for _ in range(more))
            if unexplained:
                wrong.append(f"{job} counts {more} more {counter}, and no fault explains {unexplained} of them")
        self._counted[job] = Counter({counter: status.get(counter, 0) for counter in EXPLAINED_BY})
        return wrong

    def _explain(self, job: str, counter: str) -> bool:
        """Use up the oldest cause that fits."""
        for fitting in EXPLAINED_BY[counter]:
            found = next((cause for cause in self._causes if (cause.job, cause.counter) == (job, fitting)), None)
            if found:
                self._causes.remove(found)
                return True
        return False
