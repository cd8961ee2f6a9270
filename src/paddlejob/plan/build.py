"""Building an attempt: its pods are created, held at the gate until all are there, then given their environment."""

from __future__ import annotations

from paddlejob.api.types import Intranet, Phase, Role
from paddlejob.plan import environment, gang, names, network, reasons, release, times
from paddlejob.plan import rejections as rejections
from paddlejob.plan.actions import Action, Create, Delete, Kind, Plan, RecordEvent, Wake
from paddlejob.plan.causes import Cause
from paddlejob.plan.manifest import overridden, pod_manifest
from paddlejob.plan.rebuild import rebuild
from paddlejob.plan.report import reported
from paddlejob.plan.settle import fail
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

WAKE_AGAIN = 3.0
WAKES = 2
FINALIZER_PATIENCE = 60.0


def refuse_incomplete(s: Snapshot) -> Plan | None:
    """A job without workers: none is let in, but one may have been stored before our CRD was there."""
    if Role.WORKER in s.job.spec.roles:
        return None
    return fail(
        s, Cause("InvalidSpec", "spec.worker is missing; every job has workers: add it and submit the job anew")
    )


def refuse_oversized(s: Snapshot) -> Plan | None:
    """An environment that no process could be started with is refused before the first pod is made."""
    message = environment.too_large(s.job, s.status.attempt)
    return fail(s, Cause("EnvironmentTooLarge", message)) if message else None


def clear_stale(s: Snapshot) -> Plan | None:
    """Pods of an earlier attempt bear the names that the current one needs."""
    if not s.stale:
        return None
    phase = s.status.phase or Phase.PENDING
    reason, message = _will_not_go(s) or (s.status.reason, s.status.message)
    status = reported(s, phase, reason, message)
    deletes = [Delete(Kind.POD, pod.name, pod.uid, "of an earlier attempt") for pod in s.stale if not pod.deleting]
    return Plan(status, tuple(deletes))


def _will_not_go(s: Snapshot) -> reasons.Reason | None:
    """A pod that should have been gone long ago, by force even, is held by a finalizer."""
    for pod in s.stale:
        if pod.deletion_due is not None and s.now > pod.deletion_due + FINALIZER_PATIENCE:
            return "OldPodRemains", (
                f"pod {pod.name} of an earlier attempt was deleted but does not go; see its finalizers "
                f"(kubectl get pod {pod.name} -o jsonpath={{.metadata.finalizers}}), and what should remove them"
            )
    return None


def rebuild_changed(s: Snapshot) -> Plan | None:
    """Workers were scaled, or a template was changed: the pods are built anew, and that counts as no restart."""
    if all(names.is_built_from(s.job, mark) for mark in {pod.build for pod in s.current.values()}):
        return None
    cause = Cause("SpecChanged", "the number of workers or a template was changed; the pods are built anew")
    return rebuild(s, cause, because="the spec was changed", delay=0)


def wait_for_restart(s: Snapshot) -> Plan | None:
    if not s.status.nextRestartTime or s.current:
        return None
    begins = times.parse(s.status.nextRestartTime)
    if s.now >= begins:
        return None
    return Plan(reported(s, Phase.RESTARTING, s.status.reason, s.status.message), (), begins)


def fill_missing(s: Snapshot) -> Plan | None:
    """Create what is not there, Services and servers first; after a rejection, not at once again."""
    if not s.missing:
        return None
    rejection = max(s.world.rejections, key=lambda one: one.at, default=None)
    if rejection is None:
        reason, message = "PodsNotReady", "pods are being created"
    else:
        reason, message = rejections.told(rejection)
    phase = Phase.RESTARTING if s.status.phase is Phase.RESTARTING else Phase.PENDING
    status = reported(s, phase, reason, message)
    if rejection and s.now < rejection.due:
        return Plan(status, (), times.earliest(rejection.due, release.due(s)))
    return Plan(status, (*missing_services(s), *_create_pods(s), *_warn_overridden(s)))


def missing_services(s: Snapshot) -> list[Action]:
    if not _by_name(s):
        return []
    return [
        Create(Kind.SERVICE, names.pod(s.job, *slot), network.service(s.job, *slot))
        for slot in s.slots
        if names.pod(s.job, *slot) not in s.world.services
    ]


def _create_pods(s: Snapshot) -> list[Action]:
    group = gang.group(s) if gang.wanted(s.job) else None
    build = names.build_mark(s.job)
    return [
        Create(
            Kind.POD,
            names.pod(s.job, role, index),
            pod_manifest(s.job, role, index, s.status.attempt, build, group.name if group else ""),
        )
        for role, index in s.missing
    ]


def _warn_overridden(s: Snapshot) -> list[Action]:
    """Said once, when the job is first built."""
    if s.job.status.phase is not None:
        return []
    found = {role: overridden(s.job, role) for role in s.job.spec.roles}
    return [
        RecordEvent(
            "EnvironmentOverridden",
            f"the template of {role} sets {', '.join(given)} itself; its values are used instead of ours",
            warning=True,
        )
        for role, given in found.items()
        if given
    ]


def open_start_barrier(s: Snapshot) -> Plan | None:
    """Publish the environment once every pod has an address and waits for it, or runs."""
    if s.published and s.status.attempt in s.world.environments:
        return None
    pods = [s.current[slot] for slot in s.slots if slot in s.current]
    ready = [pod for pod in pods if pod.address and pod.phase is not PodPhase.PENDING and not _going(pod)]
    if not s.published and len(ready) < len(s.slots):
        return _hold(s)
    if any(not pod.address for pod in pods) or len(pods) < len(s.slots):
        return None
    addresses = {(pod.role, pod.index): pod.address for pod in pods}
    variables = environment.of_attempt(s.job, s.status.attempt, addresses)
    manifest = environment.config_map(s.job, s.status.attempt, variables)
    name = names.environment(s.job, s.status.attempt)
    rejection = s.world.rejection_of(name)
    reason, message = rejections.told(rejection) if rejection else ("Starting", "all pods are ready; training starts")
    status = reported(
        s,
        Phase.STARTING,
        reason,
        message,
        publishedAttempt=s.status.attempt,
        nextRestartTime="",
    )
    create = Create(Kind.ENVIRONMENT, name, manifest)
    wakes = [Wake(pod, 1, s.now) for pod in pods if pod.phase is PodPhase.WAITING]
    return Plan(status, (create, *wakes, *_warn_six(s, variables)), s.now + WAKE_AGAIN)


def _going(pod: Pod) -> bool:
    """Being deleted, or about to be: a job that starts with it would be rebuilt at once."""
    return pod.deleting or pod.disrupted


def _warn_six(s: Snapshot, variables: dict[str, str]) -> list[Action]:
    if "[" not in variables["PADDLE_TRAINER_ENDPOINTS"]:
        return []
    message = "pods have IPv6 addresses, which Paddle cannot take apart from a port; use intranet: Service"
    return [RecordEvent("IPv6Addresses", message, warning=True)]


def _hold(s: Snapshot) -> Plan:
    phase = Phase.RESTARTING if s.status.phase is Phase.RESTARTING else Phase.PENDING
    waits = sum(pod.phase is PodPhase.PENDING for pod in s.current.values())
    reason, message = reasons.waiting(s) or (
        "PodsNotReady", f"{waits} of {len(s.slots)} pods are not ready to start yet"
    )  # fmt: skip
    unplaced = any(pod.reason == "Unschedulable" for pod in s.current.values())
    return Plan(reported(s, phase, reason, message), (), release.due(s) if unplaced else None)


def watch_training(s: Snapshot) -> Plan:
    """Published: see that every pod starts, and say where the job stands."""
    pods = s.current.values()
    open_pods = [pod for pod in pods if not pod.ended]
    if all(pod.phase is PodPhase.RUNNING for pod in open_pods):
        return Plan(reported(s, Phase.RUNNING, "Running", _progress(s)))
    phase = s.status.phase if s.status.phase is Phase.RUNNING else Phase.STARTING
    started = sum(pod.phase is PodPhase.RUNNING for pod in pods)
    reason, message = reasons.waiting(s) or ("Starting", f"{started} of {len(s.slots)} pods train")
    waiting = [pod for pod in open_pods if pod.phase is PodPhase.WAITING and pod.woken < WAKES]
    due = [pod for pod in waiting if s.now >= pod.woken_at + WAKE_AGAIN]
    wakes = [Wake(pod, pod.woken + 1, s.now) for pod in due]
    wake_at = times.earliest(*(max(pod.woken_at, s.now if pod in due else 0) + WAKE_AGAIN for pod in waiting))
    return Plan(reported(s, phase or Phase.STARTING, reason, message), tuple(wakes), wake_at)


def _progress(s: Snapshot) -> str:
    workers, done = s.job.spec.roles[Role.WORKER].replicas, len(s.succeeded_workers)
    return f"{done} of {workers} workers have finished" if done else "all pods train"


def _by_name(s: Snapshot) -> bool:
    return s.job.spec.intranet is Intranet.SERVICE
