"""A restart waits until its backoff delay is over."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot


def wait_for_restart(s: Snapshot) -> Plan | None:
    if not s.status.nextRestartTime or s.current:
        return None
    begins = times.parse(s.status.nextRestartTime)
    if s.now >= begins:
        return None
    return Plan(reported(s, Phase.RESTARTING, s.status.reason, s.status.message), (), begins)
