"""A job whose environment is too large for any process fails before its pods start, at best before there are any."""

from __future__ import annotations

from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.objects import environment
from paddlejob.plan.snapshot import Snapshot


def fail_oversized(s: Snapshot) -> Plan | None:
    addresses = {slot: pod.address for slot, pod in s.current.items() if pod.address and not s.published}
    known = addresses if all(slot in addresses for slot in s.slots) else None
    message = environment.too_large(s.job, s.status.attempt, known)
    return fail(s, Cause("EnvironmentTooLarge", message)) if message else None
