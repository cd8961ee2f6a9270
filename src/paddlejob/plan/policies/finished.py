"""A finished job stays finished, whatever happens to its pods, and is deleted after its time to live."""

from __future__ import annotations

from paddlejob.plan import times
from paddlejob.plan.actions import DeleteJob, Plan
from paddlejob.plan.finish import clean_up
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def tidy_finished(s: Snapshot) -> Plan | None:
    if not s.status.finished:
        return None
    assert s.status.phase is not None
    status = reported(s, s.status.phase)
    ttl = s.job.spec.ttlSecondsAfterFinished
    expires = None if ttl is None else times.parse(s.status.completionTime) + ttl
    if expires is not None and s.now >= expires:
        return Plan(s.job.status, (DeleteJob(f"it ended more than {ttl} s ago (ttlSecondsAfterFinished)"),))
    return Plan(status, tuple(clean_up(s, s.status.phase)), expires)
