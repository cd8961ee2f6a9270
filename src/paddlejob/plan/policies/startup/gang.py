"""Gang scheduling by Volcano: before any pod is created there is a pod group.

A group of the user's, which has the name of the job, is used if there is one. It may follow the job in the same
file, so it is given a moment to appear. Otherwise the operator creates one.
"""

from __future__ import annotations

from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Create, Delete, Kind, Plan
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.objects.pod_group import asks_for_gang, group_in_use, is_gang, min_member, pod_group_manifest
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot

USER_GROUP_SECONDS = 5.0
VOLCANO_MISSING = (
    "the job requests gang scheduling, but Volcano is not installed in this cluster; install Volcano, or remove "
    "schedulerName: volcano and schedulingPolicy from the job"
)


def wait_for_gang(s: Snapshot) -> Plan | None:
    """A job that has all its pods no longer needs a group."""
    if not is_gang(s.job) or not s.missing:
        return None
    found = group_in_use(s.job, s.world.pod_groups)
    if found and found.owned and found.members not in (None, min_member(s.job)):
        delete = Delete(Kind.POD_GROUP, found.name, found.uid, "of another size")
        return _wait(s, "Created", "replacing the pod group: the number of pods has changed", 1, delete)
    if found:
        return None
    if not s.world.gang_scheduler:
        return _wait(s, "VolcanoMissing", VOLCANO_MISSING, 30)
    patience = times.parse(s.job.metadata.creationTimestamp or times.format(s.now)) + USER_GROUP_SECONDS
    if not asks_for_gang(s.job) and s.now < patience:
        return _wait(s, "WaitingForPodGroup", f"waiting for a PodGroup {s.job.name}", patience - s.now)
    return _create(s)


def _create(s: Snapshot) -> Plan:
    name = names.pod_group(s.job)
    rejection = s.world.rejection_of(name)
    reason, message = rejections.describe(rejection) if rejection else ("Created", "creating the pod group")
    return _wait(s, reason, message, 5, Create(Kind.POD_GROUP, name, pod_group_manifest(s.job)))


def _wait(s: Snapshot, reason: str, message: str, seconds: float, *actions: Action) -> Plan:
    return Plan(reported(s, s.waiting_phase, reason, message), actions, s.now + seconds)
