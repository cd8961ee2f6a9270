"""How long a restart waits: not at all after an attempt that made progress, else twice as long as the one before.

Steps decide where the log tells them. An attempt that went back to its checkpoint and came as far as before has made
no progress, however long it ran. Where no step is known, an attempt that trained for a minute counts as progress.
An attempt that ended within seconds delays the next one even if its step rose: a program that counts in a file of its
own and crashes at once would otherwise be restarted five times a second, without end.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.api.types import Phase, Progress
from paddlejob.delays import exponential_delay
from paddlejob.plan import times
from paddlejob.plan.restarts.shutdown import unmount_time
from paddlejob.plan.snapshot import Snapshot

FIRST_DELAY = 2.0
LONGEST_DELAY = 300.0
TRAINED = 60.0
"""Seconds of training that count as progress where no step is known."""
SHORTEST_ATTEMPT = 10.0
"""Seconds of training after which an attempt that came further is followed by the next at once."""


def steps_known(s: Snapshot) -> bool:
    """Or epochs, for a program that prints only those."""
    return bool((s.status.progress or Progress()).furthest)


def gained_steps(s: Snapshot) -> bool:
    """Whether the current attempt came further than all before it, in steps or in epochs."""
    progress = s.status.progress or Progress()
    return _rose(progress.stepAtStart, progress.highestStep) or _rose(progress.epochAtStart, progress.highestEpoch)


def _rose(before: int | None, after: int | None) -> bool:
    return after is not None and (before is None or after > before)


def made_progress(s: Snapshot) -> bool:
    return gained_steps(s) if steps_known(s) else _trained(s) >= TRAINED


def _trained(s: Snapshot) -> float:
    """Seconds for which the attempt has been running."""
    running = s.status.condition(Phase.RUNNING)
    began = times.parse(running.lastTransitionTime) if running and running.status == "True" else s.now
    return s.now - began


@dataclass(frozen=True)
class Delay:
    """How long the next restart waits."""

    series: int
    """How many attempts in a row, with the current one, ended without progress or within seconds."""
    least: float = 0.0

    @property
    def seconds(self) -> float:
        backoff = exponential_delay(self.series, FIRST_DELAY, LONGEST_DELAY) if self.series else 0.0
        return max(backoff, self.least)

    def __str__(self) -> str:
        return f"in {self.seconds:.0f} s" if self.seconds else "now"


def delay(s: Snapshot) -> Delay:
    lasted = _trained(s) >= SHORTEST_ATTEMPT
    series = 0 if made_progress(s) and lasted else s.status.restartsWithoutProgress + 1
    return Delay(series, least=unmount_time(s))
