"""Pods that are missing are created, Services and servers first."""

from __future__ import annotations

from paddlejob.api.checks.launcher import launcher_warnings
from paddlejob.api.types import Intranet, Role, Slot
from paddlejob.plan import names, times
from paddlejob.plan.actions import Action, Create, Kind, Plan, RecordEvent
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.objects import network
from paddlejob.plan.objects.build_mark import build_mark
from paddlejob.plan.objects.pod import Manifest, PodSource, overridden
from paddlejob.plan.objects.pod_group import group_in_use
from paddlejob.plan.policies.startup.release import half_created_until
from paddlejob.plan.report import reported
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Rejection


def fill_missing(s: Snapshot) -> Plan | None:
    """After a rejection nothing is created until it is due: the others would most likely be rejected too."""
    if not s.missing:
        return None
    newest = _newest_rejection(s)
    reason, message = rejections.describe(newest) if newest else ("PodsNotReady", "creating pods")
    status = reported(s, s.waiting_phase, reason, message)
    if newest and not rejections.is_due(newest, s.world, s.now):
        return Plan(status, (), times.earliest(rejections.retry_at(newest, s.world), half_created_until(s)))
    created = create_pods(s, s.missing, s.status.attempt)
    return Plan(status, (*missing_services(s), *created, *_warn_overridden(s), *_warn_launcher(s), *_warn_host_name(s)))


def _newest_rejection(s: Snapshot) -> Rejection | None:
    """Without those of workers by which an elastic job could not grow."""
    workers = range(s.job.spec.roles[Role.WORKER].replicas)
    others = {names.pod(s.job, Role.WORKER, index) for index in workers if index not in s.members}
    return rejections.newest(one for one in s.world.rejections if one.name not in others)


def services(s: Snapshot) -> dict[str, Manifest]:
    """The Services that the pods of the current attempt need, by name."""
    if s.job.spec.intranet is not Intranet.SERVICE:
        return {}
    of_pods = {pod.name: network.service_of_pod(s.job, pod) for pod in s.current.values() if not pod.service}
    return {names.service(s.job): network.service(s.job), **of_pods}


def missing_services(s: Snapshot) -> list[Action]:
    return [
        Create(Kind.SERVICE, name, manifest) for name, manifest in services(s).items() if name not in s.world.services
    ]


def create_pods(s: Snapshot, slots: list[Slot], attempt: int) -> list[Action]:
    """A pod that is created once its attempt was published joins others that train."""
    current = attempt == s.status.attempt
    replaced = s.replaced if current else {}
    group = group_in_use(s.job, s.world.pod_groups)
    mark = build_mark(s.job)
    peers = {slot: network.host_of(s.job, pod) for slot, pod in s.current.items()} if s.published and current else None
    return [
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
            ),
        )
        for role, index in slots
    ]


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


def _warn_launcher(s: Snapshot) -> list[Action]:
    """Only when the job is first built."""
    if s.job.status.phase is not None or s.current:
        return []
    return [RecordEvent("LauncherWithServers", warning, warning=True) for warning in launcher_warnings(s.job)]


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
