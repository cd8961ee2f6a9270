"""What an observer of a job sees besides its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from paddlejob.client.describe.progress import progress_line
from paddlejob.client.targets.target import JobView, PodView
from paddlejob.client.watch.usage import Usage


@dataclass(frozen=True)
class Observation:
    replica: str = ""
    """The replica whose lines these are."""
    lines: tuple[str, ...] = ()
    """The last lines of its log, without control characters."""
    losses: tuple[float, ...] = ()
    """In the order of their steps."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """What running replicas use, by the name of the pod."""


class Observer(Protocol):
    def observe(self, view: JobView, lines: int) -> Observation:
        """Look at a job once; `lines` is how many lines of a log are wanted."""


def pods_to_quote(view: JobView) -> list[PodView]:
    """The replica that the status names first, then one that failed, then the first worker."""

    def rank(pod: PodView) -> tuple[bool, bool, bool, int]:
        return not view.names(pod), pod.state != "Failed", pod.role != "worker", pod.index

    return sorted(view.pods, key=rank)


def without_framework(view: JobView, pod: PodView) -> bool:
    """Whether lines of the framework are left out: where progress is known, they are noise."""
    return bool(progress_line(view.job)) and pod.state != "Failed"
