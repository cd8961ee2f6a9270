"""Ages, durations and counts as people read them."""

from __future__ import annotations

import time

from paddlejob.api.types import PaddleJob
from paddlejob.plan import times
from paddlejob.plan.conditions import RESTARTS_IN_PLACE


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


def age(job: PaddleJob) -> str:
    """The time since the job was created; empty if that is unknown."""
    created = job.metadata.creationTimestamp
    return duration(time.time() - times.parse(created)) if created else ""


def run_time(job: PaddleJob) -> str:
    """The time from the start of the job to its end, or to now."""
    start = job.status.startTime or job.metadata.creationTimestamp
    if not start:
        return "0s"
    end = times.parse(job.status.completionTime) if job.status.completionTime else time.time()
    return duration(end - times.parse(start))


def restarts(job: PaddleJob) -> str:
    """`, 1 restart, 2 disruptions`, or an empty string."""
    counts = (
        (job.status.restarts, "restart"),
        (job.status.disruptions, "disruption"),
        (job.status.ignoredFailures, "ignored failure"),
    )
    return "".join(f", {plural(count, noun)}" for count, noun in counts if count)


def restart_note(job: PaddleJob) -> str:
    """Why the job does not restart in place although it asks for that; empty if it does, or does not ask."""
    found = job.status.condition(RESTARTS_IN_PLACE)
    return f"Note: {found.message}." if found and found.status == "False" and not job.status.finished else ""


def plural(count: int, noun: str) -> str:
    """`1 worker`, `2 workers`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size(count: float) -> str:
    """Bytes as `512Mi`, `1.5Gi`."""
    units = ["", "Ki", "Mi", "Gi", "Ti"]
    while count >= 1000 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f}{units[0]}" if count >= 10 or not units[0] else f"{count:.1f}{units[0]}"
