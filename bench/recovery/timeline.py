"""Where the time between a fault and the next new step goes, from what was seen of the job and what it recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

STAGES = {
    "noticed": "the engine sees that a pod ended",
    "decided": "the new attempt is recorded",
    "deleted": "the last old pod is gone",
    "created": "all new pods exist",
    "published": "every pod was ready; the start barrier opens",
    "started": "the last program starts",
    "imported": "Paddle is imported",
    "joined": "all workers have found each other",
    "restored": "the checkpoint is loaded",
    "stepped": "the first step",
    "caught up": "the first step beyond those before the fault",
}
"""In their order, with what has happened by then."""


@dataclass(frozen=True)
class Sight:
    """What an engine shows of a job at one moment."""

    time: float
    attempt: int
    published: int
    pods: frozenset[tuple[str, int, bool]]
    """Of each pod: its uid, its attempt, and whether it runs or may yet run."""


@dataclass(frozen=True)
class Mark:
    time: float
    what: str
    rank: int
    step: int


@dataclass(frozen=True)
class Fault:
    time: float
    kind: str
    attempt: int
    rank: int = 0


def read_marks(folder: Path) -> list[Mark]:
    lines = [line for path in sorted(folder.glob("marks-*")) for line in path.read_text().splitlines()]
    return sorted((Mark(**json.loads(line)) for line in lines if line.endswith("}")), key=lambda mark: mark.time)


def highest_step(marks: Iterable[Mark], until: float) -> int:
    return max((mark.step for mark in marks if mark.what == "step" and mark.time <= until), default=0)


def stages(fault: Fault, sights: list[Sight], marks: list[Mark], workers: int) -> dict[str, float]:
    """When each stage of the recovery was reached; those that were not are missing."""
    found: dict[str, float] = {}
    seen = [one for one in sights if one.time >= fault.time]

    def first(stage: str, condition: Callable[[Sight], bool]) -> None:
        moment = next((one.time for one in seen if condition(one)), None)
        if moment is not None:
            found[stage] = moment

    old = fault.attempt
    first("noticed", lambda one: one.attempt > old or sum(runs for _, _, runs in one.pods) < workers)
    first("decided", lambda one: one.attempt > old)
    first("deleted", lambda one: one.attempt > old and all(attempt > old for _, attempt, _ in one.pods))
    first("created", lambda one: sum(attempt > old for _, attempt, _ in one.pods) >= workers)
    first("published", lambda one: one.published > old)
    later = [mark for mark in marks if mark.time >= found.get("published", float("inf"))]
    for what in ("started", "imported", "joined", "restored"):
        by_rank = {mark.rank: mark.time for mark in reversed(later) if mark.what == what}
        if len(by_rank) == workers:
            found[what] = max(by_rank.values())
    steps = [mark for mark in later if mark.what == "step"]
    before = highest_step(marks, fault.time)
    for stage, beyond in (("stepped", 0), ("caught up", before)):
        moment = next((mark.time for mark in steps if mark.step > beyond), None)
        if moment is not None:
            found[stage] = moment
    return found


def rejoining(fault: Fault, marks: list[Mark]) -> dict[str, float]:
    """The same for a worker that is replaced alone, as far as it records it itself."""
    later = [mark for mark in marks if mark.time >= fault.time and mark.rank == fault.rank]
    begun = next((mark.time for mark in later if mark.what == "started"), float("inf"))
    own = {"stepped": "step"}
    found: dict[str, float] = {}
    for stage in ("started", "imported", "joined", "stepped"):
        what = own.get(stage, stage)
        moment = next((mark.time for mark in later if mark.what == what and mark.time >= begun), None)
        if moment is not None:
            found[stage] = moment
    return found


def durations(fault: Fault, reached: dict[str, float]) -> dict[str, float]:
    """Seconds of each stage. One that ended before the stage before it costs nothing."""
    took, before = {}, fault.time
    for stage in STAGES:
        if stage in reached:
            took[stage] = max(0.0, reached[stage] - before)
            before = max(before, reached[stage])
    return took
