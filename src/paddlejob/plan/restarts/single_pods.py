"""Replacing single pods before training begins, recorded before anything is deleted; the others stay as they are.

The status says how often each replica's pod was replaced, and a pod carries the number that it was created with. A pod
with a smaller number was replaced already, so that a crash neither loses nor doubles a replacement.
"""

from __future__ import annotations

from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.report import reported
from paddlejob.plan.restarts import replacement_counts
from paddlejob.plan.restarts.shutdown import delete_pod
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

MOST_IN_ATTEMPT = 100
"""When this many pods do not start, something is wrong with all of them; it also keeps the status small."""


def can_replace(s: Snapshot, pods: list[Pod], most: int) -> bool:
    """Whether none of the pods was replaced `most` times before."""
    few = sum(s.replaced.values()) + len(pods) <= MOST_IN_ATTEMPT
    return few and all(pod.replacement < most for pod in pods)


def replace(s: Snapshot, pods: list[Pod], cause: Cause) -> Plan:
    counts = {**s.replaced, **{(pod.role, pod.index): pod.replacement + 1 for pod in pods}}
    formatted = replacement_counts.format({slot: counts[slot] for slot in s.slots if slot in counts})
    status = reported(s, s.waiting_phase, cause, replacements=formatted)
    deletes = [delete_pod(s, pod, "replaced alone") for pod in pods]
    return Plan(status, (*deletes, RecordEvent(cause.reason, cause.message, warning=True)))
