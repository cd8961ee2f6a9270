"""What a run of bench/goodput.py shows, compared with its goals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.recovery.timeline import Fault

KEPT = {"collective": 88.0, "ps": 95.0}
"""Percent of the steps of an undisturbed run."""
KEPT_KINDS = {"kill", "delete"}
NODE_SECONDS = 20.0
NOTICED_AFTER_STALL = 15.0
TOLERANCE = 1.5
"""Seconds by which recoveries of one kind differ on a busy machine; a delay that grows would exceed it by the third."""

Recovery = tuple[Fault, Mapping[str, float]]
"""A fault, and how many seconds each stage of its recovery took."""


@dataclass(frozen=True)
class Verdict:
    what: str
    found: str
    goal: str
    met: bool

    def __str__(self) -> str:
        return f"{'met' if self.met else 'MISSED':8}{self.what}: {self.found} (goal: {self.goal})"


def verdicts(job: str, kept: float, recoveries: Sequence[Recovery], stall_seconds: float) -> list[Verdict]:
    kinds = {fault.kind for fault, _ in recoveries}
    found = [Verdict("steps kept", f"{kept:.1f} %", f"at least {KEPT[job]:g} %", kept >= KEPT[job])]
    found = found if kinds and kinds <= KEPT_KINDS else []
    return [*found, *_growth(recoveries), *_hangs(recoveries, stall_seconds), *_nodes(recoveries)]


def until_first_step(took: Mapping[str, float]) -> float:
    """Seconds from the fault to the first step, without the steps that are repeated."""
    return sum(seconds for stage, seconds in took.items() if stage != "caught up")


def _growth(recoveries: Sequence[Recovery]) -> Iterator[Verdict]:
    """The first recovery of each kind against the last; one that is not over is left out."""
    for kind in dict.fromkeys(fault.kind for fault, _ in recoveries):
        took = [until_first_step(took) for fault, took in recoveries if fault.kind == kind and "stepped" in took]
        if len(took) > 1:
            first, last = took[0], took[-1]
            goal = f"no longer than the first, which took {first:.1f} s, give or take {TOLERANCE:g} s"
            yield Verdict(f"{kind} number {len(took)}", f"{last:.1f} s", goal, last <= first + TOLERANCE)


def _hangs(recoveries: Sequence[Recovery], stall_seconds: float) -> Iterator[Verdict]:
    limit = stall_seconds + NOTICED_AFTER_STALL
    noticed = [took["noticed"] + took["decided"] for fault, took in recoveries if _is_seen(fault, took, "freeze")]
    if noticed:
        goal = f"at most {limit:g} s with stallSeconds {stall_seconds:g}"
        yield Verdict("a frozen worker is noticed after", f"{max(noticed):.1f} s", goal, max(noticed) <= limit)


def _nodes(recoveries: Sequence[Recovery]) -> Iterator[Verdict]:
    took = [until_first_step(took) for fault, took in recoveries if _is_seen(fault, took, "node")]
    if took:
        found = f"{max(took):.1f} s"
        yield Verdict("trains again after a killed node", found, f"about {NODE_SECONDS:g} s", max(took) <= NODE_SECONDS)


def _is_seen(fault: Fault, took: Mapping[str, float], kind: str) -> bool:
    return fault.kind == kind and {"noticed", "decided", "stepped"} <= took.keys()
