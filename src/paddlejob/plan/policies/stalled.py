"""An attempt in which no worker prints anything for stallSeconds hangs: the job restarts, counted as a failure.

It is decided from what was read, never from the clock alone: as long as logs cannot be read, nothing is known.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.plan.actions import Action, Delete, Kind, Plan
from paddlejob.plan.diagnosis.causes import Cause
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
    decided = count_failure(s, Cause("Stalled", _message(reading, limit)))
    return replace(decided, actions=tuple(_hastened(s, action) for action in decided.actions))


def _all_run(s: Snapshot) -> bool:
    """A pod that is not there, failed or has not started yet explains the silence."""
    unfinished = [pod for pod in s.current.values() if pod.phase is not PodPhase.SUCCEEDED]
    running = all(pod.phase is PodPhase.RUNNING and not pod.deleting for pod in unfinished)
    return s.published and bool(unfinished) and running and not s.missing


def _message(reading: LogReading, limit: int) -> str:
    headline = (
        f"no worker printed a line for {reading.silent_seconds:.0f} s (stallSeconds is {limit}), so the job hangs; if "
        "it pauses that long on purpose, raise stallSeconds"
    )
    parts = [headline]
    if reading.last_lines:
        parts.append(f"last lines of worker 0:\n{reading.last_lines[-PART_LIMIT:]}")
    else:
        parts.append("it has printed nothing at all; if it buffers its output, set PYTHONUNBUFFERED=1 or flush it")
    if reading.processes:
        parts.append(reading.processes[:PART_LIMIT])
    return "\n".join(parts)


def _hastened(s: Snapshot, action: Action) -> Action:
    if not isinstance(action, Delete) or action.force or action.kind is not Kind.POD:
        return action
    roles = {pod.role for pod in s.world.pods if pod.uid == action.uid} & s.job.spec.roles.keys()
    given = [s.job.spec.roles[role].template["spec"].get("terminationGracePeriodSeconds") for role in roles]
    return replace(action, grace=min([GRACE, *(seconds for seconds in given if seconds is not None)]))
