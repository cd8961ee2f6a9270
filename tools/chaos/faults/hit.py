"""A fault is a function that returns what it did, or nothing if it found no target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.chaos.jobs import Object
from tools.chaos.stage import SYSTEM, Stage, uid_of

THIEF = "chaos"
"""The holder of a stolen lease."""


@dataclass(frozen=True)
class Hit:
    """What a fault did, and how to see that the cluster has noticed. Without `seen`, it notices at once."""

    text: str
    seen: Callable[[], bool] = lambda: True


Fault = Callable[[Stage], Hit | None]


def name_of_fault(fault: Fault) -> str:
    return fault.__name__.replace("_", " ")


def gone(stage: Stage, pod: Object) -> Callable[[], bool]:
    """Return a function that tells whether this very pod no longer exists."""
    return lambda: uid_of(pod) not in {uid_of(one) for one in stage.items("pods")}


def works(stage: Stage) -> Callable[[], bool]:
    """Return a function that tells whether an operator has renewed its lease since now, whatever its clock says."""
    before = _renewals(stage)
    return lambda: bool(_renewals(stage) - before)


def _renewals(stage: Stage) -> set[str]:
    leases = [lease["spec"] for lease in stage.items("leases", SYSTEM)]
    return {one["renewTime"] for one in leases if one.get("holderIdentity") != THIEF}
