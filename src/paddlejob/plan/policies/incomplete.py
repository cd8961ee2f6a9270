"""A job without workers fails. Validation admits none, but one may have been stored before the CRD was installed."""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Role
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.snapshot import Snapshot


def fail_incomplete(s: Snapshot) -> Plan | None:
    if Role.WORKER in s.job.spec.roles:
        return None
    remedy = "every job needs workers: add it and submit the job again"
    return fail(s, Cause(Reason.INVALID_SPEC, "spec.worker is missing", remedy))
