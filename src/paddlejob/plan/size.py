"""How many workers a job may have: an elastic job with `worker.requests` runs with fewer than `replicas` if it must.

Parameter servers without gloo are left out: there workers come and go without a new attempt. So is Heter mode, where
the ids of heter trainers depend on the number of workers.
"""

from __future__ import annotations

from paddlejob.api.types import PaddleJob, Role, Slot
from paddlejob.plan import indexes


def is_resizable(job: PaddleJob) -> bool:
    """Without `worker.requests` it is not known how small the job may become, so it keeps its size."""
    spec = job.spec
    if spec.elastic < 1 or spec.worker is None or spec.worker.requests is None:
        return False
    return spec.heter is None and (spec.ps is None or spec.withGloo > 0)


def fewest_workers(job: PaddleJob) -> int:
    """The smallest number of workers that the job trains with."""
    worker = job.spec.roles[Role.WORKER]
    return min(worker.requests or 1, worker.replicas) if is_resizable(job) else worker.replicas


def first_worker(job: PaddleJob) -> int:
    """The index of the worker with rank 0: an elastic job may run without worker 0."""
    return min(indexes.parse(job.status.role(Role.WORKER).members), default=0)


def fewest_slots(job: PaddleJob) -> list[Slot]:
    """The replicas without which the job does not train."""
    fewest = fewest_workers(job)
    return [(role, index) for role, index in job.spec.slots if role is not Role.WORKER or index < fewest]
