"""Limits what the progress pattern of one job costs: RE2 is linear, but some patterns take 15 us for each character."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from paddlejob.api.types import ProgressSpec
from paddlejob.progress import Parser, Sample

MOST_SECONDS = 0.1
"""Of a processor; more cannot be saved up, so it is also the most of one read."""
REGAINED = 0.005
"""Seconds that a job regains in each second; a common pattern takes 5 ms for the 200 lines of a read."""


@dataclass
class PatternBudget:
    """Of one job, through all its attempts."""

    monotonic: Callable[[], float]
    slow: str | None = None
    """The pattern that used up the budget; it is not used any more, but another is."""
    _left: float = MOST_SECONDS
    _counted_at: float = 0.0

    def spend(self, pattern: str, seconds: float) -> None:
        now = self.monotonic()
        self._left = min(MOST_SECONDS, self._left + REGAINED * (now - self._counted_at)) - seconds
        self._counted_at = now
        if self._left < 0:
            # It costs nothing any more, and what it has cost must not be held against a corrected one.
            self.slow, self._left = pattern, 0.0


class BudgetedParser(Parser):
    """Stops to use a pattern that has used up its budget. Meant for a thread: RE2 lets other threads run."""

    def __init__(self, spec: ProgressSpec | None, budget: PatternBudget) -> None:
        super().__init__(spec)
        self.pattern = spec.pattern if spec else None
        self._budget = budget

    @property
    def is_off(self) -> bool:
        return self.pattern is not None and self.pattern == self._budget.slow

    def parse(self, line: str) -> Sample | None:
        if self.pattern is None:
            return super().parse(line)
        if self.is_off:
            return None
        begun = time.thread_time()
        try:
            return super().parse(line)
        finally:
            self._budget.spend(self.pattern, time.thread_time() - begun)
