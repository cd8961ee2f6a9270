"""Pods with agents: which attempt they are in, and what their programs do, as far as that is reported.

A pod keeps the label of the attempt that it was built in; `status.builtAttempt` says which label the pods of the
current attempt have. Whatever maps pods to attempts does so here.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.types import Phase, Status
from paddlejob.plan.world import AgentReport, AgentState, Pod, PodPhase, World


def attempt_of(label: int, status: Status) -> int:
    """The attempt that a pod with this label is in now."""
    return status.attempt if status.builtAttempt and label == status.builtAttempt else label


def built_attempt(status: Status) -> int:
    """The label of the pods of the current attempt."""
    return status.builtAttempt or status.attempt


def as_reported(world: World, status: Status) -> World:
    """The world with each pod in its attempt, and with programs that ended although their containers run.

    All decisions about pods are made from this. Without agents it is the world itself.
    """
    if not world.agents and not status.builtAttempt:
        return world
    pods = (_as_reported(pod, status, world.agents.get(pod.uid)) for pod in world.pods)
    return replace(world, pods=tuple(pods))


def _as_reported(pod: Pod, status: Status, report: AgentReport | None) -> Pod:
    lives = pod.phase is PodPhase.RUNNING and not pod.deleting
    attempt = attempt_of(pod.attempt, status)
    if attempt != pod.attempt:
        if not lives and status.publishedAttempt != status.attempt:
            return pod  # It ended before the attempt began.
        pod = replace(pod, attempt=attempt, built=pod.attempt)
    if not lives or attempt != status.attempt:
        return pod
    ended = report is not None and report.state is not AgentState.RUNNING
    if report and ended and report.attempt == attempt:
        return replace(pod, phase=PodPhase.FAILED, exit_code=report.exit_status, message=report.output, held=True)
    begun = report.attempt >= attempt if report else status.phase is Phase.RUNNING
    return replace(pod, phase=PodPhase.WAITING, held=ended) if pod.built and not begun else pod
