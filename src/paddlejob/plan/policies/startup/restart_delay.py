"""A restart waits until its backoff delay is over."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.plan import times
from paddlejob.plan.actions import Plan
from paddlejob.plan.policies.startup import startup_deadline
from paddlejob.plan.report import reported
from paddlejob.plan.restarts import backoff
from paddlejob.plan.snapshot import Snapshot

LONGEST_DELAY = max(backoff.LONGEST_DELAY, startup_deadline.LONGEST_DELAY)
"""One that is longer was written by a clock that has been set back since."""


def wait_for_restart(s: Snapshot) -> Plan | None:
    if not s.status.nextRestartTime or s.current:
        return None
    begins = times.parse(s.status.nextRestartTime)
    if s.now >= begins or begins - s.now > LONGEST_DELAY:
        return None
    return Plan(reported(s, Phase.RESTARTING), (), begins)
