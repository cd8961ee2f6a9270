"""Whether a job in a queue of Kueue has the quota that it needs."""

from __future__ import annotations

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase, Role
from paddlejob.plan import indexes
from paddlejob.plan.manifests.build_mark import is_built_from, templates_changed
from paddlejob.plan.size import fewest_workers, is_resizable
from paddlejob.plan.workload import Workload
from paddlejob.plan.world import PodPhase, World


def queue_of(job: PaddleJob) -> str:
    """The LocalQueue that the user chose; empty if the job is not queued."""
    return job.metadata.labels.get(contract.LABEL_QUEUE, "")


def is_queued(job: PaddleJob, world: World) -> bool:
    return world.queueing is not None and bool(queue_of(job))


def entered_queue(job: PaddleJob, world: World) -> str:
    """The queue that the job waits in or was admitted by; empty if it was started without one."""
    has_workload = world.queueing is not None and world.queueing.workload is not None
    return queue_of(job) if has_workload or job.status.queue or is_held(job, world) else ""


def is_held(job: PaddleJob, world: World) -> bool:
    """Whether the job may not run now.

    A job that was started without a queue runs on and is queued when it is rebuilt. So does one that runs when Kueue
    is uninstalled.
    """
    if world.queueing is None or not queue_of(job) or job.status.finished:
        return False
    workload = world.queueing.workload
    entered = bool(job.status.queue) or workload is not None
    if world.pods and not (entered and world.queueing.version):
        return False
    return workload is None or not (workload.may_run and describes(workload, job) and _suffices(workload, job, world))


def describes(workload: Workload, job: PaddleJob) -> bool:
    """Whether the Workload is that of the job as it is now.

    A new priority class, or another number of workers that are enough, is not worth the quota that a job has.
    """
    if workload.queue != queue_of(job) or not (
        is_built_from(job, workload.build) or _has_only_new_defaults(workload, job)
    ):
        return False
    same_class = priority_class(job) in ("", workload.priority_class)
    return workload.has_quota or (workload.fewest == fewest_to_admit(job) and same_class)


def _has_only_new_defaults(workload: Workload, job: PaddleJob) -> bool:
    """Whether its spec differs only by defaults of a newer CRD, which are not worth the quota that a job has.

    A suspended job may have been given other templates before its Workload was deleted.
    """
    if not job.status.observedGeneration or job.status.phase is Phase.SUSPENDED or templates_changed(job):
        return False
    return workload.counts == {role.value: spec.replicas for role, spec in job.spec.roles.items()}


def priority_class(job: PaddleJob) -> str:
    """The name of Kueue's priority class of the job, else that of its pods."""
    own = job.metadata.labels.get(contract.LABEL_QUEUE_PRIORITY, "")
    of_pods = (spec.template["spec"].get("priorityClassName") for spec in job.spec.roles.values())
    return own or next((name for name in of_pods if name), "")


def fewest_to_admit(job: PaddleJob) -> int | None:
    """The fewest workers that an elastic job accepts; None if it needs all of them."""
    return fewest_workers(job) if is_resizable(job) else None


def admitted_workers(world: World) -> int | None:
    """How many workers have quota; None if the job is not queued or not admitted."""
    workload = world.queueing.workload if world.queueing else None
    found = workload.assignments.get(Role.WORKER) if workload else None
    return found.count if found else None


def _suffices(workload: Workload, job: PaddleJob, world: World) -> bool:
    """Whether no worker needs quota again that it gave back when it had succeeded in an earlier attempt."""
    status = job.status
    done = indexes.parse(status.role(Role.WORKER).finished) | {
        pod.index
        for pod in world.pods
        if pod.role is Role.WORKER and pod.attempt == status.attempt and pod.phase is PodPhase.SUCCEEDED
    }
    return workload.reclaimable.get(Role.WORKER, 0) <= len(done)
