"""A job is complete when every worker has succeeded; servers do not count.

Workers that a scaled-down job no longer wants count as long as it was not rebuilt: they train a part of the data. Those
that an elastic job lacks do not: the others train their part.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.plan import times
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.finish import clean_up
from paddlejob.plan.report import reported
from paddlejob.plan.size import is_resizable
from paddlejob.plan.snapshot import Snapshot


def settle_success(s: Snapshot) -> Plan | None:
    needed = s.members if is_resizable(s.job) else s.members.union(range(s.workers_built))
    if not s.succeeded_workers.issuperset(needed):
        return None
    workers = len(needed)
    message = f"all {workers} workers succeeded" if workers > 1 else "the worker succeeded"
    status = reported(s, Phase.COMPLETED, Cause(Reason.COMPLETED, message), completionTime=times.format(s.now))
    return Plan(status, (*clean_up(s, Phase.COMPLETED), RecordEvent(Reason.COMPLETED, message)))
