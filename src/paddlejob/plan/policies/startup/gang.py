"""Gang scheduling by Volcano: before any pod is created there is a pod group.

A group of the user's, which has the name of the job, is used if there is one. It may follow the job in the same
file, so it is given a moment to appear. Otherwise the operator creates one.
"""

from __future__ import annotations

from paddlejob.api.reasons import Reason
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Create, Delete, Kind, Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.manifests.pod_group import asks_for_gang, group_in_use, is_gang, min_member, pod_group_manifest
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot

USER_GROUP_SECONDS = 5.0
VOLCANO_MISSING = Cause(
    Reason.VOLCANO_MISSING,
    "the job requests gang scheduling, but Volcano is not installed in this cluster",
    "install Volcano, or remove schedulerName: volcano and schedulingPolicy from the job",
)


def wait_for_gang(s: Snapshot) -> Plan | None:
    """A job that has all its pods no longer needs a group."""
    if not is_gang(s.job) or not s.missing:
        return None
    found = group_in_use(s.job, s.world.pod_groups)
    if found and found.owned and found.members not in (None, min_member(s.job)):
        delete = Delete(Kind.POD_GROUP, found.name, found.uid, "of another size")
        cause = Cause(Reason.CREATED, "replacing the pod group: the number of pods has changed")
        return _wait(s, cause, 1, delete)
    if found:
        return None
    if not s.world.gang_scheduler:
        return _wait(s, VOLCANO_MISSING, 30)
    patience = times.parse(s.job.metadata.creationTimestamp or times.format(s.now)) + USER_GROUP_SECONDS
    if not asks_for_gang(s.job) and s.now < patience:
        cause = Cause(Reason.WAITING_FOR_POD_GROUP, f"waiting for a PodGroup {s.job.name}")
        return _wait(s, cause, patience - s.now)
    return _create(s)


def _create(s: Snapshot) -> Plan:
    name = names.pod_group(s.job)
    rejection = s.world.rejection_of(name)
    cause = rejections.describe(rejection) if rejection else Cause(Reason.CREATED, "creating the pod group")
    return _wait(s, cause, 5, Create(Kind.POD_GROUP, name, pod_group_manifest(s.job)))


def _wait(s: Snapshot, cause: Cause, seconds: float, *actions: Action) -> Plan:
    return Plan(reported(s, s.waiting_phase, cause), actions, s.now + seconds)
