"""A disruption from outside rebuilds the job; it is not counted against backoffLimit.

A rule of spec.failurePolicy may count it, or end the job.
"""

from __future__ import annotations

from paddlejob.api.types import FailureAction
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis import causes, failure_rules
from paddlejob.plan.finish import fail
from paddlejob.plan.policies.failure import restart_counted
from paddlejob.plan.restarts import backoff
from paddlejob.plan.restarts.rebuild import restart
from paddlejob.plan.snapshot import Snapshot


def settle_disruption(s: Snapshot) -> Plan | None:
    found = causes.disruption(s)
    if found is None:
        return None
    decision = failure_rules.decide(s, found, ())
    if decision and decision.action is FailureAction.FAIL:
        return fail(s, failure_rules.fatal(decision, found))
    if decision and decision.action is FailureAction.RESTART:
        return restart_counted(s, found)
    count = s.status.disruptions + 1
    cause = found.adding(f"rebuilding the job (disruption {count}, not counted as a failure)")
    return restart(s, cause, backoff.delay(s), because=f"disruption {count}", disruptions=count)
