"""A job whose workers were scaled or whose template was changed is rebuilt; that is not counted as a restart."""

from __future__ import annotations

from paddlejob.api.types import Role
from paddlejob.plan.actions import Plan
from paddlejob.plan.causes import Cause
from paddlejob.plan.objects.build_mark import is_built_from
from paddlejob.plan.rebuild import rebuild
from paddlejob.plan.snapshot import Snapshot


def rebuild_changed(s: Snapshot) -> Plan | None:
    scaled = s.workers_built not in (0, s.job.spec.roles[Role.WORKER].replicas)
    if not scaled and all(is_built_from(s.job, mark) for mark in {pod.build for pod in s.current.values()}):
        return None
    cause = Cause("SpecChanged", "the number of workers or a template was changed; rebuilding the pods")
    return rebuild(s, cause, because="the spec was changed", delay=0)
