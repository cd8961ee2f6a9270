"""A job whose workers were scaled or whose template was changed is rebuilt; that is not counted as a restart.

An elastic job with `worker.requests` is rebuilt only for fewer workers. For more of them it grows, without stopping
before there is room for them.

A newer CRD may add defaults to the template, so a template that reads differently was not necessarily changed by the
user. The status tells what was seen last: at the same generation nothing was changed, and a template is changed only
while the job is suspended, which takes two generations to go unnoticed.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Role
from paddlejob.plan import indexes
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.manifests.build_mark import is_built_from, templates_changed
from paddlejob.plan.restarts.rebuild import rebuild
from paddlejob.plan.size import is_resizable
from paddlejob.plan.snapshot import Snapshot


def rebuild_changed(s: Snapshot) -> Plan | None:
    wanted = s.job.spec.roles[Role.WORKER].replicas
    if is_resizable(s.job) and len(s.members) > wanted:
        return _scale_down(s, wanted)
    keeps_its_size = is_resizable(s.job) or s.has_live_workers
    scaled = not keeps_its_size and s.workers_built not in (0, wanted)
    built = all(is_built_from(s.job, mark) for mark in {pod.build for pod in s.current.values()})
    if not scaled and (built or not _changed(s)):
        return None
    cause = Cause(Reason.SPEC_CHANGED, "the number of workers or a template was changed", "rebuilding the pods")
    return rebuild(s, cause, because="the spec was changed", delay=0)


def _scale_down(s: Snapshot, wanted: int) -> Plan:
    fact = f"scaled down from {len(s.members)} to {wanted} workers"
    cause = Cause(Reason.SCALED_DOWN, fact, "training continues from its checkpoint")
    kept = indexes.format(sorted(s.members)[:wanted])
    worker = s.status.role(Role.WORKER).model_copy(update={"members": kept})
    return rebuild(s.reporting(worker=worker), cause, because="scaled down", delay=0)


def _changed(s: Snapshot) -> bool:
    """Whether the user changed what pods are built from since the status was written."""
    generation, seen = s.job.metadata.generation, s.job.status
    if not seen.observedGeneration:
        return True
    if generation == seen.observedGeneration:
        return False
    if any(_scaled(s, role) for role in s.job.spec.roles):
        return True
    return templates_changed(s.job)


def _scaled(s: Snapshot, role: Role) -> bool:
    """Live workers are scaled without a rebuild. A job that may run with fewer workers than it asks for grows later."""
    if role is Role.WORKER and (s.has_live_workers or is_resizable(s.job)):
        return False
    return s.job.spec.roles[role].replicas != s.job.status.role(role).replicas
