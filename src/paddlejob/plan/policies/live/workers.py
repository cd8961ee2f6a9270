"""Workers of an asynchronous parameter-server job are replaced alone, while the others train.

It applies with elastic >= 1 and withGloo: 0, as long as every server lives: workers then only talk to servers. The
environment of the attempt exists already, so a new pod starts without waiting for others. A dead server is left to the
policies that rebuild the job.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Role
from paddlejob.plan.actions import Plan
from paddlejob.plan.finish import fail
from paddlejob.plan.policies.live.joining import keep_joining
from paddlejob.plan.policies.live.losses import FAILURES, TIMEOUTS, Loss, due, losses
from paddlejob.plan.policies.live.scaling import scale_live
from paddlejob.plan.policies.live.worker_replacement import replace_workers
from paddlejob.plan.policies.startup.startup_deadline import is_late
from paddlejob.plan.restarts import backoff, replacement_counts
from paddlejob.plan.snapshot import Snapshot

FIRST = (Role.WORKER, 0)


def keep_live_workers(s: Snapshot) -> Plan | None:
    if not s.has_live_workers or not _servers_live(s):
        return None
    s = s.reporting(replacements=_still_needed(s))
    found = losses(s)
    if any(loss.slot == FIRST and loss.counter != TIMEOUTS for loss in found) and not _parameters_pushed(s):
        return None
    ripe = [loss for loss in found if s.now >= due(s, loss)]
    return scale_live(s) or _fail(s, found) or (replace_workers(s, ripe) if ripe else keep_joining(s, found))


def _still_needed(s: Snapshot) -> str:
    """The record without workers that were removed and whose pods are gone, so that it does not grow without end."""
    joining = s.joining - s.current.keys()
    known = {*s.slots, *((pod.role, pod.index) for pod in s.world.pods)}
    counts = {slot: n for slot, n in s.replaced.items() if slot in joining or (n and slot in known)}
    return replacement_counts.format(counts, joining)


def _servers_live(s: Snapshot) -> bool:
    servers = [s.current.get(slot) for slot in s.slots if slot[0] is Role.PS]
    return all(
        pod and not pod.ended and not pod.deleting and not pod.disrupted and not is_late(s, pod) for pod in servers
    )


def _parameters_pushed(s: Snapshot) -> bool:
    """Whether the first worker has trained in this attempt, as its log tells.

    If it has, its replacement keeps the parameters of the servers. If it died before it pushed its initial ones, the
    dense tables hold zeros, which never learn (docs/decisions/0008). Without a log to tell, the job is rebuilt.
    """
    seen = s.world.logs
    if seen is None or seen.attempt != s.status.attempt:
        return False
    # A program that resumes prints a step before it trains, but no metric.
    return bool(seen.metrics and (seen.step or seen.epoch)) or bool(seen.steps_per_second)


def _fail(s: Snapshot, found: list[Loss]) -> Plan | None:
    """A failure that a new pod cannot fix, or one too many, ends the job."""
    failures = [loss.cause for loss in found if loss.counter == FAILURES]
    if ended := next((cause for cause in failures if cause.permanent), None):
        return fail(s, ended)
    count, limit = _counted(s, len(failures)), s.job.spec.backoff_limit
    if not failures or count <= limit:
        return None
    often = f"{count} times" if count > 1 else "once"
    ended = replace(failures[0], reason=Reason.BACKOFF_LIMIT_EXCEEDED)
    return fail(s, ended.adding(f"failed {often}, backoffLimit is {limit}"))


def _counted(s: Snapshot, failures: int) -> int:
    """The failures that backoffLimit limits, with these.

    All that happen within an attempt count: the steps are those of the first worker and say nothing about another.
    """
    before = s.status.failuresWithoutProgress if backoff.steps_known(s) else s.status.restarts
    return before + failures
