"""API objects cut down to what plans are made from, as they come in: nothing else is kept in memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.operator.container_status import fate
from paddlejob.plan import Pod, PodGroup
from paddlejob.plan.names import environment_of
from paddlejob.plan.times import parse

Object = dict[str, Any]
T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Owned(Generic[T]):
    """Something that a job owns; `owner` is the job's uid."""

    namespace: str
    job: str
    owner: str
    value: T


def owner_of(obj: Object) -> str:
    """The uid of the PaddleJob that made it; Kubeflow has a kind of that name too."""
    references = obj["metadata"].get("ownerReferences") or []
    return next((one["uid"] for one in references if one.get("controller") and is_ours(one)), "")


def is_ours(reference: Object) -> bool:
    group: str = reference["apiVersion"].partition("/")[0]
    return group == contract.GROUP and reference["kind"] == contract.KIND


def _owned(obj: Object, value: T) -> Owned[T]:
    metadata = obj["metadata"]
    job = (metadata.get("labels") or {}).get(contract.LABEL_JOB, "")
    return Owned(metadata["namespace"], job, owner_of(obj), value)


def attempt_of(obj: Object) -> int:
    text = (obj["metadata"].get("labels") or {}).get(contract.LABEL_ATTEMPT, "")
    return int(text) if text.isdigit() else 0


def job(obj: Object) -> PaddleJob | None:
    """None for an object that no PaddleJob of ours could be; the CRD lets none such in."""
    try:
        return PaddleJob.model_validate(obj)
    except ValidationError as error:
        log.error("job %s/%s is unreadable: %s", obj["metadata"]["namespace"], obj["metadata"]["name"], error)
        return None


def environment(obj: Object) -> Owned[tuple[int, str]]:
    return _owned(obj, (attempt_of(obj), obj["metadata"]["uid"]))


def service(obj: Object) -> Owned[tuple[str, str]]:
    return _owned(obj, (obj["metadata"]["name"], obj["metadata"]["uid"]))


def pod_group(obj: Object) -> Owned[PodGroup]:
    metadata, status = obj["metadata"], obj.get("status") or {}
    words = [one.get("message", "") for one in status.get("conditions") or [] if one.get("type") == "Unschedulable"]
    group = PodGroup(
        metadata["name"],
        metadata["uid"],
        bool(owner_of(obj)),
        status.get("phase", ""),
        words[-1] if words else "",
        (obj.get("spec") or {}).get("minMember"),
    )
    return _owned(obj, group)


def pod(obj: Object) -> Owned[Pod | None]:
    """The value is None for a pod that bears our label by accident."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    try:
        role, index = Role(labels[contract.LABEL_ROLE]), int(labels[contract.LABEL_INDEX])
    except (KeyError, ValueError):
        return _owned(obj, None)
    status, annotations = obj.get("status") or {}, metadata.get("annotations") or {}
    woken, _, woken_at = annotations.get(contract.ANNOTATION_WAKE, "0 0").partition(" ")
    due = metadata.get("deletionTimestamp")
    value = Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        role=role,
        index=index,
        attempt=attempt_of(obj),
        address=status.get("podIP", ""),
        node=obj["spec"].get("nodeName", ""),
        created=parse(metadata["creationTimestamp"]),
        deletion_due=parse(due) if due else None,
        build=annotations.get(contract.ANNOTATION_BUILD, ""),
        woken=int(woken),
        woken_at=float(woken_at),
        stopping=obj["spec"].get("activeDeadlineSeconds") == 1,
        lingers=status.get("phase") not in ("Failed", "Succeeded"),
        **fate(obj, environment_of(labels.get(contract.LABEL_JOB, ""), owner_of(obj), attempt_of(obj))),
    )
    return _owned(obj, value)
