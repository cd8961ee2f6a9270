"""The status of a pod's training container, from what kubelets and controllers write to the pod's status."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paddlejob import contract
from paddlejob.api.template import training_container
from paddlejob.kube.resource import Object
from paddlejob.plan import PodPhase
from paddlejob.plan.diagnosis import evictions
from paddlejob.plan.world import GATED, NODE_LOST, OUT_OF_TIME, UNSCHEDULABLE
from paddlejob.redaction import without_environment

STATUS_UNKNOWN = ("ContainerStatusUnknown", "Unknown")
"""Reasons of a container that existed before its node restarted; how it ended is not known."""
TRANSIENT = "failed to sync configmap cache"
"""A kubelet that is slow to start watching reports this for a moment; nothing is missing."""
DISRUPTION_REASONS = {
    "TerminationByKubelet": "Evicted",
    "EvictionByEvictionAPI": "Evicted",
    "PreemptionByScheduler": "Preempted",
    "DeletionByTaintManager": NODE_LOST,
    "DeletionByPodGC": NODE_LOST,
}


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """How far the training container has come; the fields are those of `plan.Pod`."""

    phase: PodPhase
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    disrupted: bool = False
    unsure: bool = False


def container_status(pod: Object, environment: str) -> ContainerStatus:
    """The training container's status; it waits at the start barrier if only the ConfigMap `environment` is missing."""
    status: Object = pod.get("status") or {}
    state = container_state(pod)
    if _evicted_for_usage(pod, status):
        return ContainerStatus(PodPhase.FAILED, reason=evictions.REASON, message=status["message"])
    if condition := _condition(status, "DisruptionTarget"):
        return _disrupted(condition, status, state)
    if status.get("reason") in ("Evicted", "NodeLost", "Preempting"):
        return ContainerStatus(
            PodPhase.FAILED, reason=status["reason"], message=status.get("message", ""), disrupted=True
        )
    if "waiting" in state or not state:
        return _waiting(status, state.get("waiting") or {}, environment)
    found = _running_or_ended(status, state)
    if status.get("reason") == OUT_OF_TIME and not is_stopping(pod):
        return replace(found, phase=PodPhase.FAILED, reason=OUT_OF_TIME)
    # The node's clock says when the program ended, the API server's when it was asked to, so times decide
    # nothing: exit code 0 means a checkpoint. A success is on record a second later, whatever happens to its pod then.
    deleted = "deletionTimestamp" in pod["metadata"] and found.phase is PodPhase.SUCCEEDED
    return replace(found, phase=PodPhase.FAILED) if deleted else found


def containers_ended(pod: Object) -> bool:
    """Whether the kubelet reports an end for every container that it would keep running."""
    spec, status = pod["spec"], pod.get("status") or {}
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    all_of_them = [*spec["containers"], *sidecars, *(spec.get("ephemeralContainers") or [])]
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    reported = [one for kind in kinds for one in status.get(kind) or []]
    ended = {one["name"] for one in reported if (one.get("state") or {}).get("terminated")}
    return bool(ended) and {one["name"] for one in all_of_them} <= ended


def _evicted_for_usage(pod: Object, status: Object) -> bool:
    """Whether the kubelet evicted the pod for what it used itself; such an eviction is a failure."""
    evicted = status.get("phase") == "Failed" and status.get("reason") == evictions.REASON
    return evicted and evictions.is_self_inflicted(status.get("message", ""), training_container_of(pod))


def _disrupted(condition: Object, status: Object, state: Object) -> ContainerStatus:
    found = _running_or_ended(status, state)
    failed = status.get("phase") == "Failed" or "terminated" in state
    reason = condition.get("reason", "")
    return ContainerStatus(
        phase=PodPhase.FAILED if failed else found.phase,
        exit_code=found.exit_code,
        reason=DISRUPTION_REASONS.get(reason, reason or "Evicted"),
        message=status.get("message") or condition.get("message", ""),
        disrupted=True,
    )


def is_stopping(pod: Object) -> bool:
    """Whether the operator stopped the pod, which it does when the job has ended."""
    return bool(pod["spec"].get("activeDeadlineSeconds") == 1)


def _running_or_ended(status: Object, state: Object) -> ContainerStatus:
    if "terminated" in state:
        return _terminated(state["terminated"])
    if status.get("phase") in ("Failed", "Succeeded"):
        reason = status.get("reason", "")
        # No container ever ran: the node rejected the pod, which says nothing about the program.
        disrupted = bool(reason) and reason != OUT_OF_TIME
        return ContainerStatus(PodPhase.FAILED, None, reason, status.get("message", ""), disrupted)
    return ContainerStatus(PodPhase.RUNNING if "running" in state else PodPhase.PENDING)


def _terminated(terminated: Object) -> ContainerStatus:
    code, reason = terminated.get("exitCode", 0), terminated.get("reason", "")
    return ContainerStatus(
        phase=PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED,
        exit_code=code,
        reason="" if reason in ("Completed", "Error") else reason,
        message=without_environment(terminated.get("message", "")),
        disrupted=reason in STATUS_UNKNOWN,
    )


def _waiting(status: Object, waiting: Object, environment: str) -> ContainerStatus:
    if status.get("phase") in ("Failed", "Succeeded"):
        return _running_or_ended(status, _failed_init(status))
    if waiting.get("reason") == "PodInitializing":
        waiting = _waiting_init(status) or waiting
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason == "CreateContainerConfigError" and f'configmap "{environment}" not found' in message:
        return ContainerStatus(PodPhase.WAITING)
    if TRANSIENT in message:
        return ContainerStatus(PodPhase.PENDING, unsure=True)
    if reason in ("", "ContainerCreating", "PodInitializing"):
        return _unscheduled(status)
    return ContainerStatus(PodPhase.PENDING, reason=reason, message=message)


def _unscheduled(status: Object) -> ContainerStatus:
    condition = _condition(status, "PodScheduled", "False") or {}
    if condition.get("reason") not in (UNSCHEDULABLE, GATED):
        return ContainerStatus(PodPhase.PENDING)
    return ContainerStatus(PodPhase.PENDING, reason=condition["reason"], message=condition.get("message", ""))


def training_container_of(pod: Object) -> str:
    """The name that the pod's annotation records, before anything was injected; without it, the template decides."""
    containers = pod["spec"]["containers"]
    recorded = (pod["metadata"].get("annotations") or {}).get(contract.ANNOTATION_TRAINING_CONTAINER)
    if any(one["name"] == recorded for one in containers):
        return str(recorded)
    return str(training_container(containers)["name"])


def container_state(pod: Object, container: str = "") -> Object:
    """`waiting`, `running` or `terminated` with its details, of the training container or of another one.

    Empty before the kubelet reports a state.
    """
    name, status = container or training_container_of(pod), pod.get("status") or {}
    reported = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((one.get("state") or {} for one in reported if one["name"] == name), {})


def _failed_init(status: Object) -> Object:
    for one in status.get("initContainerStatuses") or []:
        state: Object = one.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode"):
            return state
    return {}


def _waiting_init(status: Object) -> Object:
    """Why the next init container does not start; nothing while one runs."""
    states = [one.get("state") or {} for one in status.get("initContainerStatuses") or []]
    return next((state["waiting"] for state in states if "waiting" in state), {})


def _condition(status: Object, type_: str, value: str = "True") -> Object | None:
    return next(
        (one for one in status.get("conditions") or [] if one["type"] == type_ and one["status"] == value), None
    )
