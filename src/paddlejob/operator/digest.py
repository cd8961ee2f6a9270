"""API objects cut down to what plans are made from, as they come in: nothing else is kept in memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan import Pod, PodGroup, PodPhase
from paddlejob.plan.times import read

Object = dict[str, Any]
T = TypeVar("T")
log = logging.getLogger(__name__)

TRANSIENT = "failed to sync configmap cache"
"""A kubelet that is slow to start watching says this for a moment; nothing is missing."""


@dataclass(frozen=True, slots=True)
class Owned(Generic[T]):
    """Something that a job owns; `owner` is the job's uid."""

    namespace: str
    job: str
    owner: str
    value: T


def owner_of(obj: Object) -> str:
    references = obj["metadata"].get("ownerReferences") or []
    return next((one["uid"] for one in references if one.get("controller") and one["kind"] == contract.KIND), "")


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
        metadata["name"], metadata["uid"], bool(owner_of(obj)), status.get("phase", ""), words[-1] if words else ""
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
        created=read(metadata["creationTimestamp"]),
        deletion_due=read(due) if due else None,
        build=annotations.get(contract.ANNOTATION_BUILD, ""),
        woken=int(woken),
        woken_at=float(woken_at),
        stopping=obj["spec"].get("activeDeadlineSeconds") == 1,
        **_fate(obj, status),
    )
    return _owned(obj, value)


def _fate(obj: Object, status: Object) -> Object:
    """phase, exit_code, words, trouble and disrupted: how far the training container has come."""
    state = _training_state(obj, status)
    disruption = _condition(status, "DisruptionTarget")
    if disruption:
        return {"disrupted": True, **_ended_or_running(status, state), **_disruption(disruption, status)}
    if status.get("reason") in ("Evicted", "NodeLost", "Preempting"):
        return {
            "disrupted": True,
            "phase": PodPhase.FAILED,
            "trouble": status["reason"],
            "words": status.get("message", ""),
        }
    if "waiting" in state or not state:
        return _waiting(obj, status, state.get("waiting") or {})
    return _ended_or_running(status, state)


def _ended_or_running(status: Object, state: Object) -> Object:
    if "terminated" in state:
        ended = state["terminated"]
        code = ended.get("exitCode", 0)
        return {
            "phase": PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED,
            "exit_code": code,
            "words": ended.get("message", ""),
            "trouble": "" if ended.get("reason") in ("Completed", "Error") else ended.get("reason", ""),
        }
    if status.get("phase") in ("Failed", "Succeeded"):
        return {"phase": PodPhase.FAILED, "trouble": status.get("reason", ""), "words": status.get("message", "")}
    return {"phase": PodPhase.RUNNING if "running" in state else PodPhase.PENDING}


def _waiting(obj: Object, status: Object, waiting: Object) -> Object:
    if status.get("phase") in ("Failed", "Succeeded"):
        return _ended_or_running(status, _failed_init(status))
    reason, words = waiting.get("reason", ""), waiting.get("message", "")
    own = obj["metadata"]["labels"].get(contract.LABEL_JOB, "") + f"-env-{attempt_of(obj)}"
    if reason == "CreateContainerConfigError" and f'configmap "{own}" not found' in words:
        return {"phase": PodPhase.WAITING}
    if reason in ("", "ContainerCreating", "PodInitializing") or TRANSIENT in words:
        return {"phase": PodPhase.PENDING, **_unschedulable(status)}
    return {"phase": PodPhase.PENDING, "trouble": reason, "words": words}


def _unschedulable(status: Object) -> Object:
    placed = _condition(status, "PodScheduled", "False")
    if placed and placed.get("reason") == "Unschedulable":
        return {"trouble": "Unschedulable", "words": placed.get("message", "")}
    return {}


def _training_state(obj: Object, status: Object) -> Object:
    containers = obj["spec"]["containers"]
    names = [one["name"] for one in containers]
    name = contract.TRAINING_CONTAINER if contract.TRAINING_CONTAINER in names else names[0]
    states = (one.get("state") or {} for one in status.get("containerStatuses") or [] if one["name"] == name)
    return next(states, {})


def _failed_init(status: Object) -> Object:
    for one in status.get("initContainerStatuses") or []:
        state: Object = one.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode"):
            return state
    return {}


def _condition(status: Object, type_: str, value: str = "True") -> Object | None:
    return next(
        (one for one in status.get("conditions") or [] if one["type"] == type_ and one["status"] == value), None
    )


def _disruption(condition: Object, status: Object) -> Object:
    names = {
        "TerminationByKubelet": "Evicted",
        "EvictionByEvictionAPI": "Evicted",
        "PreemptionByScheduler": "Preempted",
        "DeletionByTaintManager": "NodeLost",
        "DeletionByPodGC": "NodeLost",
    }
    reason = condition.get("reason", "")
    words = status.get("message") or condition.get("message", "")
    return {"trouble": names.get(reason, reason or "Evicted"), "words": words}
