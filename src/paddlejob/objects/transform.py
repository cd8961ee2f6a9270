"""Transforms for informers: each cuts an API object down to the fields that plans use."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import ValidationError

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.kube.resource import Object
from paddlejob.objects.container_status import container_status, containers_ended, is_stopping
from paddlejob.objects.resources import attempt_of, job_of, labels_of, owner_of, owning_job
from paddlejob.objects.startup import startup
from paddlejob.objects.stored_job import StoredJob, stored
from paddlejob.plan import Pod, PodGroup
from paddlejob.plan.manifests import network
from paddlejob.plan.names import environment_of
from paddlejob.plan.times import parse

T = TypeVar("T")
REPLICA_NAME = re.compile(rf"-({'|'.join(Role)})-(\d{{1,9}})")
WOKEN = re.compile(r"(\d{1,9}) (\d{1,12}(?:\.\d{1,9})?)")
OTHER_WORKLOADS = ("batch.volcano.sh", "v1", "apps", "batch")
"""API groups of workloads for which Volcano makes pod groups; `v1` is a plain pod."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Owned(Generic[T]):
    """An object that belongs to a job."""

    namespace: str
    job: str
    """The job's name, from the object's owner reference; without one, from its label."""
    owner: str
    """The job's uid, from the object's owner reference."""
    value: T


def owned(obj: Object, value: T) -> Owned[T]:
    return Owned(obj["metadata"]["namespace"], owning_job(obj), owner_of(obj), value)


@dataclass(frozen=True, slots=True)
class UnreadableJob:
    """A stored object that is not a valid PaddleJob. The CRD admits none, but one may be older than the CRD."""

    namespace: str
    name: str
    uid: str
    message: str
    """Which fields cannot be read, and what to do about it."""


def job(obj: Object) -> PaddleJob | UnreadableJob:
    try:
        return PaddleJob.model_validate(obj)
    except ValidationError as error:
        metadata = obj["metadata"]
        found = UnreadableJob(metadata["namespace"], metadata["name"], metadata.get("uid", ""), _unreadable(error))
        about = {"namespace": found.namespace, "job": found.name}
        log.error("job %s/%s: %s", found.namespace, found.name, found.message, extra=about)
        return found


def stored_job(obj: Object) -> StoredJob | UnreadableJob:
    """The job as a cache keeps it, at a third of its size."""
    found = job(obj)
    return found if isinstance(found, UnreadableJob) else stored(found)


def _unreadable(error: ValidationError) -> str:
    faults = [(".".join(str(part) for part in one["loc"]), one["msg"], one["input"]) for one in error.errors()]
    quoted = "; ".join(f"{field} is {json.dumps(given, default=str)[:80]}: {why}" for field, why, given in faults[:5])
    if all(field.startswith("status.") for field, _, _ in faults):
        remedy = "its status was written by another operator; delete the job; to train, create it again"
    else:
        remedy = "correct these fields, or delete the job and create it again"
    return f"the job cannot be read, so nothing is done for it; {remedy}: {quoted}"


def config_map(obj: Object) -> Owned[tuple[int, str]]:
    """The attempt and the uid of an environment's ConfigMap; 0 and the name of another one, which holds an agent."""
    attempt = attempt_of(obj)
    return owned(obj, (attempt, obj["metadata"]["uid" if attempt else "name"]))


def service(obj: Object) -> Owned[tuple[str, str]]:
    """The name and the uid of a Service."""
    return owned(obj, (obj["metadata"]["name"], obj["metadata"]["uid"]))


def is_of_another_workload(obj: Object) -> bool:
    """Whether a PodGroup belongs to a workload that is not ours; Volcano makes one for each of its jobs and pods."""
    owners = (one for one in obj["metadata"].get("ownerReferences") or [] if one.get("controller"))
    return any(one["apiVersion"].partition("/")[0] in OTHER_WORKLOADS for one in owners)


def pod_group(obj: Object) -> Owned[PodGroup]:
    metadata, status = obj["metadata"], obj.get("status") or {}
    unschedulable = [one for one in status.get("conditions") or [] if one.get("type") == "Unschedulable"]
    group = PodGroup(
        name=metadata["name"],
        uid=metadata["uid"],
        owned=bool(owner_of(obj)),
        phase=status.get("phase", ""),
        message=unschedulable[-1].get("message", "") if unschedulable else "",
        members=(obj.get("spec") or {}).get("minMember"),
    )
    return owned(obj, group)


def pod(obj: Object) -> Owned[Pod | None]:
    """The value is None for a pod that has a job's label but is not a replica."""
    labels = labels_of(obj)
    try:
        role, index = Role(labels[contract.LABEL_ROLE]), int(labels[contract.LABEL_INDEX])
    except (KeyError, ValueError):
        return owned(obj, _mislabelled(obj))
    if owner_of(obj) and job_of(obj) and obj["metadata"]["name"] != f"{job_of(obj)}-{role}-{index}":
        return owned(obj, _mislabelled(obj))
    return owned(obj, _pod(obj, role, index))


def _mislabelled(obj: Object) -> Pod | None:
    """A pod of ours whose labels were removed or changed: it is of no attempt, but has the name that a replica needs.

    With the labels of another replica it would hide that one, and none of the two would be replaced.
    """
    found = REPLICA_NAME.fullmatch(obj["metadata"]["name"].removeprefix(owning_job(obj)))
    if not found or not owner_of(obj) or not job_of(obj):
        return None
    return replace(_pod(obj, Role(found[1]), int(found[2])), attempt=0)


def _pod(obj: Object, role: Role, index: int) -> Pod:
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    woken, woken_at = _woken(annotations.get(contract.ANNOTATION_WAKE, ""))
    deletion_due = metadata.get("deletionTimestamp")
    attempt = attempt_of(obj)
    before = startup(obj)
    replacement = annotations.get(contract.ANNOTATION_REPLACEMENT, "")
    training = container_status(obj, environment_of(owning_job(obj), owner_of(obj), attempt))
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        role=role,
        index=index,
        attempt=attempt,
        phase=training.phase,
        address=status.get("podIP", ""),
        node=spec.get("nodeName", ""),
        created=parse(metadata["creationTimestamp"]),
        deletion_due=parse(deletion_due) if deletion_due else None,
        exit_code=training.exit_code,
        message=training.message,
        reason=training.reason,
        disrupted=training.disrupted,
        unsure=training.unsure,
        build=annotations.get(contract.ANNOTATION_BUILD, ""),
        woken=woken,
        woken_at=woken_at,
        stopping=is_stopping(obj),
        lingers=status.get("phase") not in ("Failed", "Succeeded"),
        containers_ended=containers_ended(obj),
        scheduling_since=before.scheduling_since,
        nominated=before.nominated,
        initializing=before.initializing,
        init_ended=before.init_ended,
        init_failed=before.init_failed,
        initialized=before.initialized,
        replacement=int(replacement) if replacement.isdecimal() else 0,
        dns_name=network.dns_name(spec),
    )


def _woken(annotation: str) -> tuple[int, float]:
    """How often and when last the pod was woken; zero if the annotation, which anyone may write, cannot be read."""
    found = WOKEN.fullmatch(annotation)
    return (int(found[1]), float(found[2])) if found else (0, 0.0)
