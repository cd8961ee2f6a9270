"""The start barrier: no pod starts training before all of them can.

Every pod waits for one ConfigMap, the environment of the attempt. It is created once each pod has an address and
waits for nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob import contract
from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase, Role, RoleStatus
from paddlejob.plan import indexes, names, ranks, times
from paddlejob.plan.actions import Action, Create, Kind, Plan, RecordEvent, Wake
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.diagnosis.waiting import why_waiting
from paddlejob.plan.manifests import environment, network
from paddlejob.plan.policies.startup.release import partially_scheduled_until
from paddlejob.plan.policies.startup.startup_deadline import startup_deadline
from paddlejob.plan.policies.training import WAKE_AGAIN, may_be_woken, watch_training
from paddlejob.plan.report import reported
from paddlejob.plan.size import is_resizable
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase


def open_start_barrier(s: Snapshot) -> Plan | None:
    if s.published and s.status.attempt in s.world.environments:
        return None
    pods = [s.current[slot] for slot in s.slots if slot in s.current]
    if not s.published and sum(_is_ready(pod) for pod in pods) < len(s.slots):
        return _hold(s)
    if any(not pod.address for pod in pods) or len(pods) < len(s.slots):
        return None
    if not s.published and s.status.attempt in s.world.environments and _all_run(pods):
        return watch_training(s.reporting(publishedAttempt=s.status.attempt, **_members(s)))
    return _restore(s, pods) if s.published and s.status.phase is Phase.RUNNING else _publish(s, pods)


def _is_ready(pod: Pod) -> bool:
    """A pod that is being deleted, or is about to be, is not: the job would be rebuilt as soon as it starts."""
    return bool(pod.address) and pod.phase is not PodPhase.PENDING and not pod.deleting and not pod.disrupted


def _all_run(pods: list[Pod]) -> bool:
    """With the environment that they need, which only a job whose status was lost has not recorded."""
    return all(pod.phase is PodPhase.RUNNING for pod in pods if not pod.ended)


def _members(s: Snapshot) -> dict[str, RoleStatus]:
    """The record of the workers that an elastic job begins with, and of the ranks that follow the nodes."""
    worker = s.status.role(Role.WORKER)
    members = indexes.format(s.members) if is_resizable(s.job) else worker.members
    return {"worker": worker.model_copy(update={"members": members, "ranks": ranks.record(_workers(s))})}


def _workers(s: Snapshot) -> list[int]:
    """The workers in the order of their ranks: as recorded, or by the nodes that they have now."""
    if not ranks.follow_nodes(s.job):
        return sorted(s.members)
    if s.published or s.status.builtAttempt:
        return indexes.parse_order(s.status.role(Role.WORKER).ranks) or sorted(s.members)
    return ranks.in_order((pod for pod in s.current.values() if pod.role is Role.WORKER), s.world.domains)


def _hold(s: Snapshot) -> Plan:
    pending = sum(pod.phase is PodPhase.PENDING for pod in s.current.values())
    wake_at = times.earliest(partially_scheduled_until(s), startup_deadline(s))
    not_ready = f"{pending} of {len(s.slots)} pods are not ready to start"
    cause = why_waiting(s) or Cause(Reason.PODS_NOT_READY, not_ready)
    return Plan(reported(s, s.waiting_phase, cause), tuple(_ask_again(s)), wake_at)


def _ask_again(s: Snapshot) -> list[Action]:
    """Pods that may wait for nothing but their environment.

    After the init containers, and if it could not read ConfigMaps in time, a kubelet reports only with its next try
    that the environment is missing, which it makes after 10 s.
    """
    pods = [pod for pod in s.current.values() if pod.phase is PodPhase.PENDING and (pod.initialized or pod.unsure)]
    return [Wake(pod, 0, s.now) for pod in pods if not pod.woken_at and not pod.deleting]


def _restore(s: Snapshot, pods: list[Pod]) -> Plan:
    """Someone deleted the environment of a job that trains: pods that run do not need it, so the job still runs."""
    name, data = names.environment(s.job, s.status.attempt), variables(s, pods)
    decided, rejection = watch_training(s), s.world.rejection_of(name)
    if rejection and any(pod.phase is PodPhase.WAITING for pod in pods):
        decided = replace(decided, status=reported(s, Phase.RUNNING, rejections.describe(rejection)))
    create = Create(Kind.ENVIRONMENT, name, environment.config_map(s.job, s.status.attempt, data))
    return replace(decided, actions=(create, *decided.actions))


def variables(s: Snapshot, pods: list[Pod]) -> dict[str, str]:
    hosts = {(pod.role, pod.index): network.host_of(s.job, pod) for pod in pods}
    return environment.of_attempt(s.job, s.status.attempt, hosts, _workers(s), s.status.builtAttempt)


def _publish(s: Snapshot, pods: list[Pod]) -> Plan:
    attempt = s.status.attempt
    data = variables(s, pods)
    name = names.environment(s.job, attempt)
    rejection = s.world.rejection_of(name)
    starting = Cause(Reason.STARTING, "all pods are ready; starting")
    published = {"publishedAttempt": attempt, "nextRestartTime": "", "avoidedDomains": (), **_members(s)}
    status = reported(s, Phase.STARTING, rejections.describe(rejection) if rejection else starting, **published)
    create = Create(Kind.ENVIRONMENT, name, environment.config_map(s.job, attempt, data))
    # A rejected environment is created again when that is due; before that, no pod can start.
    can_start = rejection is None or rejections.is_due(rejection, s.world, s.now)
    wakes = [Wake(pod, 1, s.now) for pod in pods if can_start and may_be_woken(pod, s.now)]
    return Plan(status, (create, *wakes, *_warn_ipv6(data)), s.now + WAKE_AGAIN)


def _warn_ipv6(variables: dict[str, str]) -> list[Action]:
    if "[" not in variables[contract.ENV_ENDPOINTS]:
        return []
    message = "pods have IPv6 addresses, which Paddle cannot parse in host:port; use intranet: Service"
    return [RecordEvent("IPv6Addresses", message, warning=True)]
