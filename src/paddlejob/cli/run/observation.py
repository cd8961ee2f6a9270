"""What a screen shows of a job besides its status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paddlejob.errors import Overloaded, Unreachable
from paddlejob.targets.log_views import LastLines
from paddlejob.targets.sync import run_outside_loop
from paddlejob.targets.target import Target
from paddlejob.targets.views import JobView, Usage

FIRST_LINES = 2000
"""Of the first worker's log, from which the loss is read when watching a cluster begins."""


@dataclass(frozen=True)
class Observation:
    log: LastLines = field(default_factory=LastLines)
    losses: tuple[float, ...] = ()
    """In the order of their steps."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """What running replicas use, by the name of the pod."""


Observe = Callable[[JobView, int], Observation]
"""Looks at a job once; the number is how many lines of a log are wanted."""


def observer(target: Target) -> Observe:
    async def observe(view: JobView, lines: int) -> Observation:
        """Nothing while a cluster does not answer: the status says so."""
        job = view.job
        try:
            log, series, usage = await asyncio.gather(
                target.last_lines(view, lines), target.series(job.namespace, job.name, FIRST_LINES), target.usage(view)
            )
        except (Unreachable, Overloaded):
            return Observation()
        return Observation(log, series.losses, usage)

    return lambda view, lines: run_outside_loop(observe(view, lines))
