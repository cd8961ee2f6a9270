"""The status that a plan reports: phase and conditions from the decision, counts from the world."""

from __future__ import annotations

from paddlejob.api.types import Phase, Role, RoleStatus, Status, deletes_pods
from paddlejob.plan import indexes, past_attempts, progress
from paddlejob.plan.cause import Cause
from paddlejob.plan.conditions import conditions
from paddlejob.plan.manifests.metadata import worker_selector
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

MESSAGE_LIMIT = 2000


def reported(s: Snapshot, phase: Phase, cause: Cause | None = None, **changes: object) -> Status:
    """The status with a new phase, for the same cause as before if none is given.

    Its counts are those of the attempt that it names.
    """
    why = {"reason": cause.reason, "message": cause.message[:MESSAGE_LIMIT]} if cause else {}
    after = s.reporting(phase=phase, **why, **changes)
    counts = {role.value: _counted(after, role) for role in after.job.spec.roles}
    status = after.status.model_copy(
        update={
            **counts,
            "selector": worker_selector(s.job),
            "conditions": conditions(after),
        }
    )
    status = past_attempts.recorded(s.job.status, status, s.now)
    return progress.carried_on(s.job.status, status, s.now)


def _counted(s: Snapshot, role: Role) -> RoleStatus:
    wanted = s.job.spec.roles[role].replicas
    pods = [pod for pod in s.current.values() if pod.role is role]
    size = len(s.members) if role is Role.WORKER else wanted
    phases = [pod.phase for pod in pods]
    running = 0 if _servers_end(s) else phases.count(PodPhase.RUNNING)
    finished = s.succeeded_workers if role is Role.WORKER else frozenset()
    return RoleStatus(
        replicas=size,
        pending=phases.count(PodPhase.PENDING) + phases.count(PodPhase.WAITING),
        running=running,
        succeeded=max(phases.count(PodPhase.SUCCEEDED), len(finished)),
        failed=sum(_is_failure(pod, s.status.phase) for pod in pods if pod.index not in finished),
        ready=f"{running}/{wanted}",
        finished=indexes.format(finished),
        members=s.status.role(role).members,
        ranks=s.status.role(role).ranks,
    )


def _servers_end(s: Snapshot) -> bool:
    """Whether what still runs is about to be stopped because the job is complete."""
    completed = s.status.phase is Phase.COMPLETED
    return completed and (s.world.stop_when_finished or deletes_pods(s.job.spec.clean, Phase.COMPLETED))


def _is_failure(pod: Pod, phase: Phase | None) -> bool:
    """A pod that is stopped or deleted once the job has completed did not fail."""
    return pod.phase is PodPhase.FAILED and not ((pod.stopping or pod.deleting) and phase is Phase.COMPLETED)
