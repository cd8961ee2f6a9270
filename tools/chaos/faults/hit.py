"""A fault is a function that returns what it did, or nothing if it found no target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.chaos.jobs import Object
from tools.chaos.stage import Stage, uid_of


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
