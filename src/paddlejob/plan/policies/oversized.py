"""A job whose environment is too large for any process fails before its first pod is created."""

from __future__ import annotations

from paddlejob.plan.actions import Plan
from paddlejob.plan.causes import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.objects import environment
from paddlejob.plan.snapshot import Snapshot


def fail_oversized(s: Snapshot) -> Plan | None:
    message = environment.too_large(s.job, s.status.attempt)
    return fail(s, Cause("EnvironmentTooLarge", message)) if message else None
