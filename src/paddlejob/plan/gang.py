"""Gang scheduling by Volcano: all pods of a job are placed together or none is.

The user's own PodGroup, which bears the job's name, is used where there is one; it may stand after the job in the
same file, so it is waited for a moment. Otherwise we make one, before any pod.
"""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import names, times
from paddlejob.plan import rejections as rejections
from paddlejob.plan.actions import Action, Create, Delete, Kind, Plan
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import PodGroup

USER_GROUP_SECONDS = 5.0


def wanted(job: PaddleJob) -> bool:
    """schedulerName volcano on any role is enough; so is a scheduling policy."""
    named = (spec.template["spec"].get("schedulerName") for spec in job.spec.roles.values())
    return job.spec.schedulingPolicy is not None or contract.VOLCANO_SCHEDULER in named


def group(s: Snapshot) -> PodGroup | None:
    """The group in use: ours if there is one, else the user's."""
    by_name = {one.name: one for one in s.world.pod_groups}
    ours = by_name.get(names.pod_group(s.job))
    return ours if ours and ours.ours else by_name.get(s.job.name)


def wait_for_gang(s: Snapshot) -> Plan | None:
    """Before pods are created. A job that has all its pods needs no group any more."""
    if not wanted(s.job) or not s.missing:
        return None
    found = group(s)
    if found and found.ours and found.members not in (None, members(s.job)):
        status = reported(s, _waiting_phase(s), "Created", "the pod group is replaced: the number of pods has changed")
        return Plan(status, (Delete(Kind.POD_GROUP, found.name, found.uid, "of another size"),), s.now + 1)
    if found:
        return None
    if not s.world.gang_scheduler:
        message = (
            "the job asks for gang scheduling, but Volcano is not installed in this cluster; install Volcano, or "
            "remove schedulerName: volcano and schedulingPolicy from the job"
        )
        return Plan(reported(s, _waiting_phase(s), "VolcanoMissing", message), (), s.now + 30)
    patience = times.parse(s.job.metadata.creationTimestamp or times.format(s.now)) + USER_GROUP_SECONDS
    if s.job.spec.schedulingPolicy is None and s.now < patience:
        status = reported(s, _waiting_phase(s), "WaitingForPodGroup", f"looking for a PodGroup {s.job.name}")
        return Plan(status, (), patience)
    name = names.pod_group(s.job)
    rejection = s.world.rejection_of(name)
    reason, message = rejections.told(rejection) if rejection else ("Created", "the pod group is being created")
    status = reported(s, _waiting_phase(s), reason, message)
    return Plan(status, (Create(Kind.POD_GROUP, name, manifest(s.job)),), s.now + 5)


def _waiting_phase(s: Snapshot) -> Phase:
    return s.status.phase if s.status.phase is Phase.RESTARTING else Phase.PENDING


def leave(s: Snapshot) -> list[Action]:
    """Our own group holds resources of its queue, so it goes when the pods do."""
    return [
        Delete(Kind.POD_GROUP, one.name, one.uid, "the job no longer runs") for one in s.world.pod_groups if one.ours
    ]


def members(job: PaddleJob) -> int:
    policy = job.spec.schedulingPolicy
    return policy.minAvailable if policy and policy.minAvailable is not None else job.spec.pods_wanted


def manifest(job: PaddleJob) -> dict[str, Any]:
    policy = job.spec.schedulingPolicy
    spec: dict[str, Any] = {"minMember": members(job)}
    if policy:
        given = {
            "queue": policy.queue,
            "priorityClassName": policy.priorityClass,
            "minResources": policy.minResources,
        }
        spec |= {key: value for key, value in given.items() if value is not None}
    return {
        "apiVersion": contract.VOLCANO_API,
        "kind": "PodGroup",
        "metadata": names.metadata(job, names.pod_group(job), names.labels(job)),
        "spec": spec,
    }
