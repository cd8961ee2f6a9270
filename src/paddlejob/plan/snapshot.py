"""A job and its world, looked at once and sorted; every policy reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from paddlejob.api.types import PaddleJob, Phase, Role, Status
from paddlejob.plan import indexes, times
from paddlejob.plan.world import Pod, PodPhase, World

Slot = tuple[Role, int]


@dataclass(frozen=True)
class Snapshot:
    job: PaddleJob
    world: World
    now: float
    status: Status
    """The status so far, begun or resumed if the job was neither."""

    @cached_property
    def current(self) -> dict[Slot, Pod]:
        """Pods of the current attempt."""
        return {(pod.role, pod.index): pod for pod in self.world.pods if pod.attempt == self.status.attempt}

    @cached_property
    def stale(self) -> list[Pod]:
        """Pods of earlier attempts, and of replicas that are no longer wanted."""
        wanted = set(self.slots)
        return [
            pod for pod in self.world.pods if pod.attempt != self.status.attempt or (pod.role, pod.index) not in wanted
        ]

    @cached_property
    def slots(self) -> list[Slot]:
        """Every replica that is wanted, servers first."""
        return [(role, index) for role, spec in self.job.spec.roles.items() for index in range(spec.replicas)]

    @cached_property
    def succeeded_workers(self) -> frozenset[int]:
        """Workers that are done, also those whose pod is gone since."""
        done = {
            index
            for (role, index), pod in self.current.items()
            if role is Role.WORKER and pod.phase is PodPhase.SUCCEEDED
        }
        return indexes.parse(self.status.role(Role.WORKER).finished) | done

    @cached_property
    def missing(self) -> list[Slot]:
        """Replicas that should have a pod and have none. A worker that has succeeded needs none."""
        return [
            slot
            for slot in self.slots
            if slot not in self.current and not (slot[0] is Role.WORKER and slot[1] in self.succeeded_workers)
        ]

    @property
    def published(self) -> bool:
        return 0 < self.status.attempt == self.status.publishedAttempt

    def reporting(self, **changes: object) -> Snapshot:
        return replace(self, status=self.status.model_copy(update=changes))


def look(job: PaddleJob, world: World, now: float) -> Snapshot:
    status = job.status.model_copy(update={"mode": job.mode, "observedGeneration": job.metadata.generation})
    # A new job, or one that another operator had begun.
    unbegun = status.attempt == 0 and not status.finished
    begins = unbegun or (status.phase is Phase.SUSPENDED and not job.spec.suspend)
    if begins and not job.spec.suspend:
        status = status.model_copy(
            update={
                "phase": Phase.PENDING,
                "attempt": max(1, status.attempt),
                "startTime": times.format(now),
                "reason": "Created" if job.status.phase is None else "Resumed",
                "message": "pods are being created",
            }
        )
    return Snapshot(job, world, now, status)
