"""How long the pods of an attempt that ends get to shut down.

Peers of a collective worker that died wait for it inside a collective operation, where not even a signal handler of
Python runs, and trainers hang when a server died. One that ignores SIGTERM, as process 1 of a container does by
default, would cost the whole grace period of 30 s. What a thread or a process beside it still saves is another matter:
pods that write to a volume which outlives them have their time.
"""

from __future__ import annotations

from paddlejob.api.types import Mode, PaddleJob, Role
from paddlejob.plan import volumes
from paddlejob.plan.actions import Delete, Kind
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import NODE_LOST, Pod, PodPhase

SHORT_GRACE = 2
"""Seconds between SIGTERM and SIGKILL: the least that a kubelet gives."""
UNMOUNT_SECONDS = 5.0
"""After its containers have ended, a kubelet takes two rounds of a second each to unmount the volumes of a pod."""


def delete_pod(s: Snapshot, pod: Pod, because: str, grace: int | None = None) -> Delete:
    """Delete a pod whose name is needed again."""
    return Delete(Kind.POD, pod.name, pod.uid, because, force=may_be_forced(s, pod), grace=grace)


def may_be_forced(s: Snapshot, pod: Pod) -> bool:
    """A kubelet takes two rounds of a second each to remove a pod whose containers have ended.

    Nothing of it runs, so the next pod need not wait for that, unless volumes are written back meanwhile.
    """
    return pod.containers_ended and not unmounts(s, pod.role)


def unmounts(s: Snapshot, role: Role) -> bool:
    """Whether what a pod wrote may be complete only when its volumes are unmounted. On this machine they never are."""
    return not s.world.one_machine and volumes.flushes_on_unmount(s.job, role)


def unmount_time(s: Snapshot) -> float:
    """Seconds that the next attempt leaves to the volumes of pods that end by themselves.

    The API server removes such a pod at once, whatever grace period is given, and nothing tells when its kubelet is
    done. A pod that still runs when it is deleted is gone only after that.
    """
    return UNMOUNT_SECONDS if s.published and any(unmounts(s, role) for role in s.job.spec.roles) else 0.0


def short_grace(job: PaddleJob, pod: Pod) -> int | None:
    """Seconds; None where the template decides: by a grace period, a preStop hook, or a volume that is written to."""
    own = _sets_shutdown(job, pod.role) or volumes.keeps_data(job, pod.role)
    return None if own else SHORT_GRACE


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
