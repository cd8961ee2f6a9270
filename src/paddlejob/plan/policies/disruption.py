"""A disruption from outside rebuilds the job; it is not counted against backoffLimit."""

from __future__ import annotations

from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis import causes
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.rebuild import restart
from paddlejob.plan.snapshot import Snapshot


def settle_disruption(s: Snapshot) -> Plan | None:
    found = causes.disruption(s)
    if found is None:
        return None
    count = s.status.disruptions + 1
    message = f"{found.message}; rebuilding the job (disruption {count}, not counted as a failure)"
    because = f"disruption {count}"
    return restart(s, Cause(found.reason, message), because=because, disruptions=count)
