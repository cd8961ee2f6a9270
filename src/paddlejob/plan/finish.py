"""Ending a job: the final status, and what happens to its pods."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role, deletes_pods
from paddlejob.plan import indexes, times
from paddlejob.plan.actions import Action, Delete, Kind, Order, OrderAgents, Plan, RecordEvent, Stop
from paddlejob.plan.cause import Cause
from paddlejob.plan.quota import is_queued
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase


def fail(s: Snapshot, cause: Cause) -> Plan:
    status = reported(s, Phase.FAILED, cause, completionTime=times.format(s.now))
    return Plan(status, (*clean_up(s, Phase.FAILED), RecordEvent(cause.reason, cause.message, warning=True)))


def clean_up(s: Snapshot, phase: Phase) -> list[Action]:
    """Delete the pods that cleanPodPolicy names, and stop those that it keeps where they must not keep running."""
    if deletes_pods(s.job.spec.clean, phase):
        because = f"cleanPodPolicy is {s.job.spec.clean} and the job is {phase}"
        return [*_delete(s.world.pods, because), *leave_gang(s)]
    unscheduled = [pod for pod in s.current.values() if _has_no_kubelet(pod)]
    return [
        *_delete(s.stale, "of an earlier attempt"),
        *_delete(unscheduled, f"it has no node and the job is {phase}"),
        *_stop_kept(s, phase),
        *release_agents(s),
        *leave_gang(s),
    ]


def _delete(pods: tuple[Pod, ...] | list[Pod], because: str) -> list[Action]:
    return [Delete(Kind.POD, pod.name, pod.uid, because) for pod in pods if not pod.deleting]


def _stop_kept(s: Snapshot, phase: Phase) -> list[Action]:
    """Servers of a completed job may keep running in a cluster; pods of a failed job never do, but their logs stay.

    Those of a queued job never do either: its quota is given back.

    Only a kubelet can stop a pod, so one without a node is deleted instead.
    """
    uses_quota = is_queued(s.job, s.world)
    if phase is not Phase.FAILED and not s.world.stop_when_finished and not uses_quota:
        return end_sidecars(s)
    return [
        Stop(pod, f"the job is {phase}")
        for pod in s.current.values()
        if not _has_no_kubelet(pod)
        and (not pod.ended or pod.lingers)
        and not pod.held
        and not pod.stopping
        and not pod.deleting
    ]


def release_agents(s: Snapshot) -> list[Action]:
    """Agents that wait for orders exit as their programs did."""
    held = tuple(pod.uid for pod in s.current.values() if pod.held)
    return [OrderAgents(Order.RELEASE, held, s.status.attempt)] if held else []


def end_sidecars(s: Snapshot) -> list[Action]:
    """A worker that is on record as successful needs its pod no longer, but a sidecar keeps its requests in use.

    Kubernetes does the same with sidecars among the init containers.
    """
    done = indexes.parse(s.job.status.role(Role.WORKER).finished)
    pods = [pod for pod in s.current.values() if pod.role is Role.WORKER and pod.index in done]
    return [
        Stop(pod, "its worker has succeeded")
        for pod in pods
        if pod.phase is PodPhase.SUCCEEDED and pod.has_sidecars_left and not pod.stopping and not pod.deleting
    ]


def _has_no_kubelet(pod: Pod) -> bool:
    return not pod.node and pod.phase is PodPhase.PENDING


def leave_gang(s: Snapshot) -> list[Action]:
    """The operator's own pod group holds resources of its queue, so it goes when the pods do."""
    return [
        Delete(Kind.POD_GROUP, one.name, one.uid, "the job no longer runs") for one in s.world.pod_groups if one.owned
    ]
