"""Pods of an earlier attempt are deleted first: they have the names that the current attempt needs.

As soon as a name is free, its next pod is created; the start barrier stays closed until the last old pod is gone. A
job of 1,000 pods would otherwise wait for the slowest kubelet before it creates the first.
"""

from __future__ import annotations

from dataclasses import replace

from paddlejob.api.reasons import Reason
from paddlejob.api.types import Phase
from paddlejob.plan import times, volumes
from paddlejob.plan.actions import Plan
from paddlejob.plan.cause import Cause
from paddlejob.plan.diagnosis import rejections
from paddlejob.plan.diagnosis.terminating import is_past_due, still_runs
from paddlejob.plan.manifests.pod_group import is_gang
from paddlejob.plan.policies.startup.missing_pods import create_pods, free_slots, missing_services
from paddlejob.plan.policies.startup.restart_delay import wait_for_restart
from paddlejob.plan.ranks import topology_of
from paddlejob.plan.report import reported
from paddlejob.plan.restarts.rebuild import rebuild
from paddlejob.plan.restarts.shutdown import delete_pod, may_be_forced, unmounts
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod

FINALIZER_PATIENCE = 60.0


def clear_stale(s: Snapshot) -> Plan | None:
    cleared = delete_stale(s)
    if cleared is None or s.published:
        return cleared
    if s.current and (remains := _remains(s)):
        # What it has would wait for that pod, perhaps for hours, and nobody else could use it.
        return rebuild(s, remains, because="an old pod remains", delay=0)
    early = create_pods(s, free_slots(s), s.status.attempt) if _may_begin(s) else []
    waits = wait_for_restart(s)
    wake_at = times.earliest(cleared.wake_at, waits.wake_at if waits else None)
    return replace(
        cleared, actions=(*cleared.actions, *(missing_services(s) if early else ()), *early), wake_at=wake_at
    )


def _may_begin(s: Snapshot) -> bool:
    """Whether a pod may be created while others of an earlier attempt end.

    Not where it would read what they still write or write back, where something else places or admits the pods
    together, or where the old ones may stay. A quota may count them: after a rejection they are waited for.
    """
    together = s.world.one_machine or is_gang(s.job) or s.status.queue or topology_of(s.job)
    flushed = not any(unmounts(s, role) or volumes.reads_before_start(s.job, role) for role in s.job.spec.roles)
    ending = not any(is_past_due(pod, s.now) for pod in s.stale) and not rejections.denied(s.world, s.stale)
    return flushed and ending and not together and not wait_for_restart(s) and not rejections.of_creates(s.world)


def delete_stale(s: Snapshot) -> Plan | None:
    if not s.stale:
        return None
    phase = s.status.phase or Phase.PENDING
    deletes = [delete_pod(s, pod, "of an earlier attempt") for pod in s.stale if _can_go(s, pod)]
    patience = [pod.deletion_due + FINALIZER_PATIENCE for pod in s.stale if pod.deletion_due is not None]
    wake_at = times.earliest(*(moment for moment in patience if moment >= s.now))
    return Plan(reported(s, phase, _remains(s) or rejections.denied(s.world, s.stale)), tuple(deletes), wake_at)


def _can_go(s: Snapshot, pod: Pod) -> bool:
    """Not deleted yet, or it need not wait for its kubelet any longer. One with a finalizer is due then, and stays."""
    return pod.deletion_due is None or (may_be_forced(s, pod) and s.now < pod.deletion_due)


def _remains(s: Snapshot) -> Cause | None:
    """A pod that is still there long after it should have been gone, even by force, has a finalizer."""
    for pod in s.stale:
        if still_runs(s, pod):
            fact = (
                f"pod {pod.name} of an earlier attempt was deleted but does not end, although its node {pod.node} "
                f"responds; {'its program' if pod.lingers else 'a volume'} may still write, so it is not replaced"
            )
            command = f"kubectl delete pod {pod.name} --grace-period=0 --force"
            remedy = f"check the volumes of that node, or delete the pod by force ({command})"
            return Cause(Reason.OLD_POD_REMAINS, fact, remedy)
        if pod.deletion_due is not None and s.now >= pod.deletion_due + FINALIZER_PATIENCE:
            command = f"kubectl get pod {pod.name} -o jsonpath={{.metadata.finalizers}}"
            remedy = f"check its finalizers ({command}) and the controller that should remove them"
            fact = f"pod {pod.name} of an earlier attempt was deleted but still exists"
            return Cause(Reason.OLD_POD_REMAINS, fact, remedy)
    return None
