"""A pod that trains before its attempt was published got its environment from a ConfigMap that is not the job's.

Whatever it computes is wrong, even if it succeeds. The next attempt waits for a ConfigMap of another name.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.plan import names
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.restarts import backoff
from paddlejob.plan.restarts.rebuild import restart
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import PodPhase


def rebuild_foreign(s: Snapshot) -> Plan | None:
    """The job's own environment may exist although the status that published it was lost."""
    if s.job.spec.suspend or s.published or s.status.attempt in s.world.environments:
        return None
    begun = [pod for pod in s.current.values() if pod.phase in (PodPhase.RUNNING, PodPhase.SUCCEEDED)]
    if not begun:
        return None
    taken = names.environment(s.job, s.status.attempt)
    fact = f"pod {begun[0].name} read its environment from a ConfigMap {taken} that is not the job's"
    cause = Cause(Reason.ENVIRONMENT_TAKEN, fact, "delete that ConfigMap")
    delay, count = backoff.delay(s), s.status.disruptions + 1
    return restart(s, cause, delay, because="foreign environment", disruptions=count)
