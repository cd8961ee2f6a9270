"""Replacing live workers: recorded and counted before anything is deleted; no other pod is touched."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.policies.live.losses import DISRUPTIONS, FAILURES, IGNORED, TIMEOUTS, Loss
from paddlejob.plan.report import reported
from paddlejob.plan.restarts import backoff, replacement_counts
from paddlejob.plan.restarts.shutdown import delete_pod
from paddlejob.plan.snapshot import Snapshot

UNLIMITED = {DISRUPTIONS: "disruption", TIMEOUTS: "time", IGNORED: "ignored failure"}
"""What is counted, but not against backoffLimit."""


def replace_workers(s: Snapshot, losses: list[Loss]) -> Plan:
    """Only failures are limited: a job that trains for weeks on preemptible nodes loses hundreds of workers."""
    numbers = {one.slot: one.pod.replacement if one.pod else s.replaced.get(one.slot, 0) for one in losses}
    counts = s.replaced | {slot: number + 1 for slot, number in numbers.items()}
    formatted = replacement_counts.format(counts, s.joining | numbers.keys())
    counters = {name: getattr(s.status, name) + more for name, more in Counter(one.counter for one in losses).items()}
    failures = s.status.failuresWithoutProgress + sum(one.counter == FAILURES for one in losses)
    cause = _cause(s, losses, counters, failures)
    phase = s.status.phase or Phase.STARTING
    changes = {"replacements": formatted, "failuresWithoutProgress": failures, **counters}
    status = reported(s, phase, cause, **changes)
    pods = [one.pod for one in losses if one.pod and not one.pod.deleting]
    deletes = [delete_pod(s, pod, "replaced alone") for pod in pods]
    return Plan(status, (*deletes, RecordEvent(cause.reason, cause.message, warning=True)), s.now)


def _cause(s: Snapshot, losses: list[Loss], counters: dict[str, int], failures: int) -> Cause:
    """Failures first: they are what the user can change."""
    first = min(losses, key=lambda one: one.counter != FAILURES)
    others = f" and {len(losses) - 1} more" if len(losses) > 1 else ""
    count = counters[first.counter]
    limit, steps_known = s.job.spec.backoff_limit, backoff.steps_known(s)
    counted = f"restart {count}, failure {failures} of {limit}" if steps_known else f"restart {count} of {limit}"
    if first.counter != FAILURES:
        counted = f"{UNLIMITED[first.counter]} {count}, not counted as a failure"
    told = first.cause.adding(f"replacing only its pod{others} ({counted}), the other workers keep training")
    return replace(told, reason=Reason.WORKER_REPLACED)
