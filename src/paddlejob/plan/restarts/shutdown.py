"""How long the pods of an attempt that ends get to shut down.

Peers of a collective worker that died wait for it inside a collective operation, where not even a signal handler of
Python runs, and trainers hang when a server died: they have nothing left to save. One that ignores SIGTERM, as process
1 of a container does by default, would cost the whole grace period of 30 s.
"""

from __future__ import annotations

from paddlejob.api.types import Mode, PaddleJob, Role
from paddlejob.plan.actions import Delete, Kind
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import NODE_LOST, Pod, PodPhase

SHORT_GRACE = 2
"""Seconds between SIGTERM and SIGKILL: the least that a kubelet gives."""


def delete_pod(pod: Pod, because: str, grace: int | None = None) -> Delete:
    """Delete a pod whose name is needed again.

    A kubelet takes two rounds of a second each to remove a pod whose containers have ended. Nothing of it runs, so the
    next pod need not wait for that.
    """
    return Delete(Kind.POD, pod.name, pod.uid, because, force=pod.containers_ended, grace=grace)


def short_grace(job: PaddleJob, pod: Pod) -> int | None:
    """Seconds; None where the template sets a grace period, or has a preStop hook: then it decides."""
    return None if _sets_shutdown(job, pod.role) else SHORT_GRACE


def nothing_to_save(s: Snapshot) -> bool:
    """Whether a member is gone without which the others cannot continue; one that is about to be evicted is not."""
    if not s.published:
        return False
    essential = (Role.WORKER,) if s.job.mode is Mode.COLLECTIVE else (Role.PS, Role.HETER)
    lost = {slot for slot, pod in s.current.items() if _is_dead(pod)} | set(s.missing)
    return any(role in essential for role, _ in lost)


def _is_dead(pod: Pod) -> bool:
    server_ended = pod.role is Role.PS and pod.ended
    return pod.phase is PodPhase.FAILED or server_ended or (pod.disrupted and pod.reason == NODE_LOST)


def _sets_shutdown(job: PaddleJob, role: Role) -> bool:
    if role not in job.spec.roles:
        return False
    spec = job.spec.roles[role].template["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or [])]
    hooks = any((one.get("lifecycle") or {}).get("preStop") for one in containers)
    return spec.get("terminationGracePeriodSeconds") is not None or hooks
