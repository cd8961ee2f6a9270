"""A job is complete when every worker has succeeded; servers do not count.

Workers that a scaled-down job no longer wants count as long as it was not rebuilt: they train a part of the data.
"""

from __future__ import annotations

from paddlejob.api.types import Phase, Role
from paddlejob.plan import times
from paddlejob.plan.actions import Plan, RecordEvent
from paddlejob.plan.finish import clean_up
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def settle_success(s: Snapshot) -> Plan | None:
    workers = max(s.job.spec.roles[Role.WORKER].replicas, s.workers_built)
    if not s.succeeded_workers.issuperset(range(workers)):
        return None
    message = f"all {workers} workers succeeded" if workers > 1 else "the worker succeeded"
    status = reported(s, Phase.COMPLETED, "Completed", message, completionTime=times.format(s.now))
    return Plan(status, (*clean_up(s, Phase.COMPLETED), RecordEvent("Completed", message)))
