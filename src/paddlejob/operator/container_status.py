"""How far the training container of a pod has come, read off its status as kubelets and controllers write it."""

from __future__ import annotations

from typing import Any

from paddlejob.api.template import training_container
from paddlejob.plan import PodPhase
from paddlejob.plan.times import parse

Object = dict[str, Any]
LOST_SIGHT = ("ContainerStatusUnknown", "Unknown")
"""Of a container that was there before its node restarted; nobody knows how it ended."""
TRANSIENT = "failed to sync configmap cache"
"""A kubelet that is slow to start watching says this for a moment; nothing is missing."""


def fate(obj: Object, environment: str) -> Object:
    """phase, exit_code, words, trouble and disrupted. `environment` is the ConfigMap that holds the pod at the gate."""
    status: Object = obj.get("status") or {}
    state = _training_state(obj, status)
    if disruption := _condition(status, "DisruptionTarget"):
        found = _ended_or_running(status, state) | _disruption(disruption, status) | {"disrupted": True}
        told = disruption.get("lastTransitionTime")
        if status.get("phase") == "Failed" or _ended_after(state, parse(told) if told else None):
            found["phase"] = PodPhase.FAILED
        return found
    if status.get("reason") in ("Evicted", "NodeLost", "Preempting"):
        return {
            "disrupted": True,
            "phase": PodPhase.FAILED,
            "reason": status["reason"],
            "message": status.get("message", ""),
        }
    if "waiting" in state or not state:
        return _waiting(status, state.get("waiting") or {}, environment)
    found = _ended_or_running(status, state)
    if _ended_after(state, _deletion_asked(obj["metadata"])):
        found["phase"] = PodPhase.FAILED
    return found


def _ended_after(state: Object, moment: float | None) -> bool:
    """Whether the program ended since it was told to: its exit status 0 then means a checkpoint, not success."""
    finished = (state.get("terminated") or {}).get("finishedAt")
    return moment is not None and finished is not None and parse(finished) >= moment


def _deletion_asked(metadata: Object) -> float | None:
    due = metadata.get("deletionTimestamp")
    return parse(due) - (metadata.get("deletionGracePeriodSeconds") or 0) if due else None


def _ended_or_running(status: Object, state: Object) -> Object:
    if "terminated" in state:
        ended = state["terminated"]
        code, reason = ended.get("exitCode", 0), ended.get("reason", "")
        return {
            "phase": PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED,
            "exit_code": code,
            "message": ended.get("message", ""),
            "reason": "" if reason in ("Completed", "Error") else reason,
            "disrupted": reason in LOST_SIGHT,
        }
    if status.get("phase") in ("Failed", "Succeeded"):
        reason = status.get("reason", "")
        return {
            "phase": PodPhase.FAILED,
            "reason": reason,
            "message": status.get("message", ""),
            # No container ever ran: the node would not have the pod, which says nothing about the program.
            "disrupted": bool(reason) and reason != "DeadlineExceeded",
        }
    return {"phase": PodPhase.RUNNING if "running" in state else PodPhase.PENDING}


def _waiting(status: Object, waiting: Object, environment: str) -> Object:
    if status.get("phase") in ("Failed", "Succeeded"):
        return _ended_or_running(status, _failed_init(status))
    reason, words = waiting.get("reason", ""), waiting.get("message", "")
    if reason == "CreateContainerConfigError" and f'configmap "{environment}" not found' in words:
        return {"phase": PodPhase.WAITING}
    if reason in ("", "ContainerCreating", "PodInitializing") or TRANSIENT in words:
        return {"phase": PodPhase.PENDING, **_unschedulable(status)}
    return {"phase": PodPhase.PENDING, "reason": reason, "message": words}


def _unschedulable(status: Object) -> Object:
    placed = _condition(status, "PodScheduled", "False")
    if placed and placed.get("reason") == "Unschedulable":
        return {"reason": "Unschedulable", "message": placed.get("message", "")}
    return {}


def _training_state(obj: Object, status: Object) -> Object:
    name = training_container(obj["spec"]["containers"])["name"]
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
    return {"reason": names.get(reason, reason or "Evicted"), "message": words}
