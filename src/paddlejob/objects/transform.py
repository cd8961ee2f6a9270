"""Transforms for informers: each cuts an API object down to the fields that plans use."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.kube.resource import Object
from paddlejob.objects.container_status import container_status
from paddlejob.objects.resources import attempt_of, job_of, labels_of, owner_of
from paddlejob.objects.startup import startup
from paddlejob.plan import Pod, PodGroup
from paddlejob.plan.names import environment_of
from paddlejob.plan.times import parse

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Owned(Generic[T]):
    """An object that belongs to a job."""

    namespace: str
    job: str
    """The job's name, from the object's label."""
    owner: str
    """The job's uid, from the object's owner reference."""
    value: T


def _owned(obj: Object, value: T) -> Owned[T]:
    return Owned(obj["metadata"]["namespace"], job_of(obj), owner_of(obj), value)


def job(obj: Object) -> PaddleJob | None:
    """Returns None for an object that is not a valid PaddleJob; the CRD admits no such object."""
    try:
        return PaddleJob.model_validate(obj)
    except ValidationError as error:
        log.error("job %s/%s cannot be read: %s", obj["metadata"]["namespace"], obj["metadata"]["name"], error)
        return None


def environment(obj: Object) -> Owned[tuple[int, str]]:
    """The attempt and the uid of an environment's ConfigMap."""
    return _owned(obj, (attempt_of(obj), obj["metadata"]["uid"]))


def service(obj: Object) -> Owned[tuple[str, str]]:
    """The name and the uid of a Service."""
    return _owned(obj, (obj["metadata"]["name"], obj["metadata"]["uid"]))


def pod_group(obj: Object) -> Owned[PodGroup]:
    metadata, status = obj["metadata"], obj.get("status") or {}
    unschedulable = [one for one in status.get("conditions") or [] if one.get("type") == "Unschedulable"]
    group = PodGroup(
        name=metadata["name"],
        uid=metadata["uid"],
        ours=bool(owner_of(obj)),
        phase=status.get("phase", ""),
        message=unschedulable[-1].get("message", "") if unschedulable else "",
        members=(obj.get("spec") or {}).get("minMember"),
    )
    return _owned(obj, group)


def pod(obj: Object) -> Owned[Pod | None]:
    """The value is None for a pod that has a job's label but none of a replica."""
    labels = labels_of(obj)
    try:
        role, index = Role(labels[contract.LABEL_ROLE]), int(labels[contract.LABEL_INDEX])
    except (KeyError, ValueError):
        return _owned(obj, None)
    return _owned(obj, _pod(obj, role, index))


def _pod(obj: Object, role: Role, index: int) -> Pod:
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    woken, _, woken_at = annotations.get(contract.ANNOTATION_WAKE, "0 0").partition(" ")
    deletion_due = metadata.get("deletionTimestamp")
    attempt = attempt_of(obj)
    before = startup(obj)
    replacement = annotations.get(contract.ANNOTATION_REPLACEMENT, "")
    training = container_status(obj, environment_of(job_of(obj), owner_of(obj), attempt))
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
        build=annotations.get(contract.ANNOTATION_BUILD, ""),
        woken=int(woken),
        woken_at=float(woken_at),
        stopping=spec.get("activeDeadlineSeconds") == 1,
        lingers=status.get("phase") not in ("Failed", "Succeeded"),
        scheduling_since=before.scheduling_since,
        nominated=before.nominated,
        initializing=before.initializing,
        init_ended=before.init_ended,
        init_failed=before.init_failed,
        replacement=int(replacement) if replacement.isdecimal() else 0,
    )
