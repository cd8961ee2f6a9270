"""Times and counts for people."""

from __future__ import annotations

import time

from paddlejob.api.types import PaddleJob
from paddlejob.plan import times


def duration(seconds: float) -> str:
    """As kubectl writes it: 9s, 4m4s, 3h12m, 5d."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 2 * 3600:
        return f"{whole // 60}m{whole % 60}s" if whole < 600 else f"{whole // 60}m"
    if whole < 48 * 3600:
        return f"{whole // 3600}h{whole % 3600 // 60}m"
    return f"{whole // 86400}d"


def age(job: PaddleJob, now: float | None = None) -> str:
    created = job.metadata.creationTimestamp
    return duration((time.time() if now is None else now) - times.parse(created)) if created else ""


def lasted(job: PaddleJob) -> str:
    begun = job.status.startTime or job.metadata.creationTimestamp
    if not begun:
        return "0s"
    ended = times.parse(job.status.completionTime) if job.status.completionTime else time.time()
    return duration(ended - times.parse(begun))


def restarts(job: PaddleJob) -> str:
    """`, 1 restart, 2 disruptions`, or nothing."""
    told = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((job.status.restarts, "restart"), (job.status.disruptions, "disruption"))
        if count
    ]
    return "".join(f", {words}" for words in told)
