"""Pods that are missing are created, Services and servers first."""

from __future__ import annotations

from paddlejob.api.checks.devices import check_devices
from paddlejob.api.checks.launcher import check_launcher
from paddlejob.api.reasons import Reason
from paddlejob.api.types import Intranet, Role, Slot
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Create, Kind, Plan, RecordEvent
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.manifests import agent, network
from paddlejob.plan.manifests.build_mark import build_mark
from paddlejob.plan.manifests.pod import Manifest, PodSource, overridden
from paddlejob.plan.manifests.pod_group import group_in_use
from paddlejob.plan.policies.startup.release import partially_created_until
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import AgentChannel, Rejection


def fill_missing(s: Snapshot) -> Plan | None:
    """After a rejection nothing is created until it is due: the others would most likely be rejected too."""
    if not s.missing:
        return None
    newest = _newest_rejection(s)
    rejected = newest is not None and not rejections.may_be_freed(newest, s.status.attempt)
    cause = rejections.describe(newest) if newest and rejected else Cause(Reason.PODS_NOT_READY, "creating pods")
    status = reported(s, s.waiting_phase, cause)
    if newest and not rejections.is_due(newest, s.world, s.now):
        return Plan(status, (), times.earliest(rejections.retry_at(newest, s.world), partially_created_until(s)))
    created = create_pods(s, s.missing, s.status.attempt)
    warnings = (*_warn_overridden(s), *_warn_program(s), *_warn_host_name(s), *_warn_no_agents(s))
    return Plan(status, (*missing_services(s), *created, *warnings))


def _newest_rejection(s: Snapshot) -> Rejection | None:
    """Without those of workers by which an elastic job could not grow."""
    workers = range(s.job.spec.roles[Role.WORKER].replicas)
    others = {names.pod(s.job, Role.WORKER, index) for index in workers if index not in s.members}
    return rejections.newest(one for one in rejections.of_creates(s.world) if one.name not in others)


def services(s: Snapshot) -> dict[str, Manifest]:
    """The Services that the pods of the current attempt need, by name."""
    return {names.service(s.job): network.service(s.job)} if s.job.spec.intranet is Intranet.SERVICE else {}


def missing_services(s: Snapshot) -> list[Action]:
    return [
        Create(Kind.SERVICE, name, manifest) for name, manifest in services(s).items() if name not in s.world.services
    ]


def free_slots(s: Snapshot) -> list[Slot]:
    """The replicas that need a pod and whose name no pod has."""
    taken = {(pod.role, pod.index) for pod in s.world.pods}
    return [slot for slot in s.missing if slot not in taken]


def create_pods(s: Snapshot, slots: list[Slot], attempt: int) -> list[Action]:
    """A pod that is created once its attempt was published joins others that train."""
    current = attempt == s.status.attempt
    replaced = s.replaced if current else {}
    group = group_in_use(s.job, s.world.pod_groups)
    mark = build_mark(s.job)
    peers = {slot: network.host_of(s.job, pod) for slot, pod in s.current.items()} if s.published and current else None
    channel = s.world.channel if s.job.spec.wants_agents and not agent.obstacle(s.job) else None
    configs = [_agent_config(s, channel)] if channel and agent.name(s.job, channel) not in s.world.agent_configs else []
    pods = [
        Create(
            Kind.POD,
            names.pod(s.job, role, index),
            PodSource(
                s.job,
                role,
                index,
                attempt,
                mark,
                group=group.name if group else "",
                replacement=replaced.get((role, index), 0),
                peers=peers,
                update=s.world.queueing.update_of(role) if s.world.queueing and s.status.queue else None,
                channel=channel,
            ),
        )
        for role, index in slots
    ]
    return [*configs, *pods]


def _agent_config(s: Snapshot, channel: AgentChannel) -> Action:
    return Create(Kind.ENVIRONMENT, agent.name(s.job, channel), lambda: agent.config_map(s.job, channel))


def _warn_no_agents(s: Snapshot) -> list[Action]:
    """Only when the job is first built."""
    why = agent.unavailable(s.job, s.world) if s.job.status.phase is None and not s.current else ""
    return [RecordEvent(agent.UNAVAILABLE, why, warning=True)] if why else []


def _warn_overridden(s: Snapshot) -> list[Action]:
    """Only when the job is first built."""
    if s.job.status.phase is not None or s.current:
        return []
    found = {role: overridden(s.job, role) for role in s.job.spec.roles}
    return [
        RecordEvent(
            "EnvironmentOverridden",
            f"the template of {role} sets {', '.join(given)}; its values replace those of paddlejob",
            warning=True,
        )
        for role, given in found.items()
        if given
    ]


def _warn_program(s: Snapshot) -> list[Action]:
    """Of what `pdj validate` says, what a program could never be seen to suffer from. Only when first built."""
    if s.job.status.phase is not None or s.current:
        return []
    templates = {str(role): spec.template for role, spec in s.job.spec.roles.items()}
    launcher = [RecordEvent("LauncherWithServers", str(fault), warning=True) for fault in check_launcher(templates)]
    faults = check_devices({"spec": s.job.spec.model_dump(mode="json", exclude_none=True)})
    return [*launcher, *(RecordEvent("DevicesNotUsed", str(fault), warning=True) for fault in faults)]


def _warn_host_name(s: Snapshot) -> list[Action]:
    """Only when the job is first built."""
    if s.job.status.phase is not None or s.current or s.job.spec.intranet is not Intranet.SERVICE:
        return []
    given = {
        f"{role}: {name}"
        for role, spec in s.job.spec.roles.items()
        for name in ("hostname", "subdomain")
        if spec.template["spec"].get(name)
    }
    if not given:
        return []
    message = f"the template sets {', '.join(sorted(given))}; with intranet: Service pods are found by their own names"
    return [RecordEvent("HostNameOverridden", message, warning=True)]
