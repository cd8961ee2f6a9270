"""Pod groups of Volcano, which places all pods of a job together or none of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob
from paddlejob.plan import names
from paddlejob.plan.manifests.metadata import labels, metadata
from paddlejob.plan.size import fewest_slots
from paddlejob.plan.world import PodGroup

ADMITTED_LATER = ("Pending", "Inqueue", "")
"""Phases of a group whose pods may not be scheduled yet."""


def is_gang(job: PaddleJob) -> bool:
    """Whether any role has schedulerName volcano, or the job has a scheduling policy with more than a topology."""
    schedulers = (spec.template["spec"].get("schedulerName") for spec in job.spec.roles.values())
    return asks_for_gang(job) or contract.VOLCANO_SCHEDULER in schedulers


def asks_for_gang(job: PaddleJob) -> bool:
    """Whether the job's scheduling policy asks for a pod group, whatever its templates say."""
    return job.spec.schedulingPolicy is not None and job.spec.schedulingPolicy.is_gang


def group_in_use(job: PaddleJob, groups: Iterable[PodGroup]) -> PodGroup | None:
    """The operator's own group if there is one, else the user's, which has the name of the job."""
    if not is_gang(job):
        return None
    by_name = {one.name: one for one in groups}
    own = by_name.get(names.pod_group(job))
    return own if own and own.owned else by_name.get(job.name)


def min_member(job: PaddleJob) -> int:
    policy = job.spec.schedulingPolicy
    return policy.minAvailable if policy and policy.minAvailable is not None else len(fewest_slots(job))


def pod_group_manifest(job: PaddleJob) -> dict[str, Any]:
    policy = job.spec.schedulingPolicy
    spec: dict[str, Any] = {"minMember": min_member(job)}
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
        "metadata": metadata(job, names.pod_group(job), labels(job)),
        "spec": spec,
    }
