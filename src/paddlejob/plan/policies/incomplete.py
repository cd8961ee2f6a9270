"""A job without workers fails. Validation admits none, but one may have been stored before the CRD was installed."""

from __future__ import annotations

from paddlejob.api.types import Role
from paddlejob.plan.actions import Plan
from paddlejob.plan.diagnosis.causes import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.snapshot import Snapshot


def fail_incomplete(s: Snapshot) -> Plan | None:
    if Role.WORKER in s.job.spec.roles:
        return None
    return fail(
        s, Cause("InvalidSpec", "spec.worker is missing; every job needs workers: add it and submit the job again")
    )
