"""A job whose environment is too large for any process fails before its pods start, at best before there are any."""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.finish import fail
from paddlejob.plan.manifests import environment, network
from paddlejob.plan.snapshot import Snapshot


def fail_oversized(s: Snapshot) -> Plan | None:
    # Programs that run have their environment.
    if s.published:
        return None
    pods = [s.current[slot] for slot in s.slots if slot in s.current]
    hosts = {(pod.role, pod.index): network.host_of(s.job, pod) for pod in pods if pod.address}
    known = hosts if len(hosts) == len(s.slots) else None
    message = environment.too_large(s.job, s.status.attempt, known)
    return fail(s, Cause(Reason.ENVIRONMENT_TOO_LARGE, message)) if message else None
