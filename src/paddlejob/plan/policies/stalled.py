"""An attempt in which no worker prints anything for stallSeconds hangs: the job restarts, counted as a failure.

It is decided from what was read, never from the clock alone: as long as logs cannot be read, nothing is known.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.plan.actions import Action, Delete, Kind, OrderAgents, Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.policies.failure import count_failure
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import LogReading, PodPhase

GRACE = 5
"""Seconds: a process that hangs rarely handles SIGTERM, and one that is stopped never does."""
PART_LIMIT = 800
"""Characters of the last lines, and of the stacks, in the message."""


def restart_stalled(s: Snapshot) -> Plan | None:
    limit, reading = s.job.spec.stallSeconds, s.world.logs
    if limit is None or reading is None or reading.attempt != s.status.attempt or not _all_run(s):
        return None
    if reading.silent_seconds is None or reading.silent_seconds < limit:
        return None
    decided = count_failure(s, _cause(s, reading, limit))
    return replace(decided, actions=tuple(_hastened(s, action) for action in decided.actions))


def _all_run(s: Snapshot) -> bool:
    """A pod that is not there, failed or has not started yet explains the silence."""
    unfinished = [pod for pod in s.current.values() if pod.phase is not PodPhase.SUCCEEDED]
    running = all(pod.phase is PodPhase.RUNNING and not pod.deleting for pod in unfinished)
    return s.published and bool(unfinished) and running and not s.missing


def about_to_stall(s: Snapshot) -> Cause | None:
    """Half of the time has passed: the user can still do something before the job is restarted."""
    limit, reading = s.job.spec.stallSeconds, s.world.logs
    if limit is None or reading is None or reading.attempt != s.status.attempt:
        return None
    if reading.silent_seconds is None or reading.silent_seconds < limit / 2:
        return None
    fact = f"no worker printed a line for {limit / 2:.0f} s; after {limit} s (stallSeconds) the job is restarted"
    return Cause(Reason.SILENT, fact, _remedy(s, reading))


def _remedy(s: Snapshot, reading: LogReading) -> str:
    """Nodes write what a program prints when its line ends. The embedded engine sees every byte."""
    if reading.draws_bar and not s.world.one_machine:
        return (
            "worker 0 redraws a progress bar, of which a node writes nothing until its line ends or has 16 KiB: print "
            "whole lines, or raise stallSeconds"
        )
    return "if it pauses that long on purpose, raise stallSeconds"


def _cause(s: Snapshot, reading: LogReading, limit: int) -> Cause:
    silent = f"no worker printed a line for {reading.silent_seconds:.0f} s (stallSeconds is {limit}), so the job hangs"
    if reading.last_lines:
        last = f"last lines of worker 0:\n{reading.last_lines[-PART_LIMIT:]}"
    else:
        last = "it has printed nothing at all; if it buffers its output, set PYTHONUNBUFFERED=1 or flush it"
        last += "" if s.world.one_machine else "; if it only redraws a progress bar, print whole lines"
    output = "\n".join(filter(None, (last, reading.processes[:PART_LIMIT])))
    return Cause(Reason.STALLED, silent, _remedy(s, reading), output)


def _hastened(s: Snapshot, action: Action) -> Action:
    if isinstance(action, OrderAgents):
        return replace(action, grace=min(action.grace, GRACE))
    if not isinstance(action, Delete) or action.force or action.kind is not Kind.POD:
        return action
    roles = {pod.role for pod in s.world.pods if pod.uid == action.uid} & s.job.spec.roles.keys()
    given = [s.job.spec.roles[role].template["spec"].get("terminationGracePeriodSeconds") for role in roles]
    return replace(action, grace=min([GRACE, *(seconds for seconds in given if seconds is not None)]))
