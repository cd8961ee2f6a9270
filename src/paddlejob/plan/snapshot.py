"""A job and its world at one moment, in the form that policies read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from paddlejob.api.reasons import Reason
from paddlejob.api.types import PaddleJob, Phase, Role, Slot, Status
from paddlejob.plan import agents, indexes, progress, quota, times
from paddlejob.plan.manifests import environment
from paddlejob.plan.manifests.build_mark import template_digest
from paddlejob.plan.restarts import replacement_counts
from paddlejob.plan.size import is_resizable
from paddlejob.plan.world import UNSCHEDULABLE, Pod, PodPhase, World


@dataclass(frozen=True)
class Snapshot:
    job: PaddleJob
    observed: World
    now: float
    status: Status
    """The status so far, with a new or resumed job already begun."""
    scale_rejected: str = ""
    """Why the job keeps its number of workers although another was requested; empty if it does not."""
    held: bool = False
    """Whether the job may not run now, because it is in a queue and has no quota."""

    @cached_property
    def world(self) -> World:
        """What was observed, with pods in the attempt that the status says they are in."""
        return agents.as_reported(self.observed, self.status)

    @cached_property
    def current(self) -> dict[Slot, Pod]:
        """Pods of the current attempt, without those that were replaced."""
        return {(pod.role, pod.index): pod for pod in self.world.pods if self._is_current(pod)}

    @cached_property
    def stale(self) -> list[Pod]:
        """Pods of earlier attempts, pods that were replaced, and pods of replicas that are no longer wanted."""
        wanted, spares = set(self.slots), {pod.uid for pod in self.spares.values()}
        return [
            pod
            for pod in self.world.pods
            if (not self._is_current(pod) or (pod.role, pod.index) not in wanted) and pod.uid not in spares
        ]

    def _is_current(self, pod: Pod) -> bool:
        replaced = pod.replacement < self.replaced.get((pod.role, pod.index), 0)
        # One with which an elastic job was about to grow may be left when another attempt begins.
        left_over = pod.role is Role.WORKER and pod.index not in self.members and is_resizable(self.job)
        return pod.attempt == self.status.attempt and not replaced and not left_over

    @cached_property
    def replaced(self) -> dict[Slot, int]:
        """How often each replica's pod was replaced alone in the current attempt."""
        return replacement_counts.parse(self.status.replacements)

    @cached_property
    def joining(self) -> frozenset[Slot]:
        """Replicas that join the running attempt and whose pods were not seen yet."""
        return replacement_counts.parse_joining(self.status.replacements)

    @cached_property
    def slots(self) -> list[Slot]:
        """The replicas of the current attempt, servers first."""
        workers = sorted(self.members)
        return [
            (role, index)
            for role, spec in self.job.spec.roles.items()
            for index in (workers if role is Role.WORKER else range(spec.replicas))
        ]

    @cached_property
    def members(self) -> frozenset[int]:
        """The workers of the current attempt; an elastic job may run with fewer than it asks for."""
        worker = self.job.spec.worker
        recorded = self.status.role(Role.WORKER)
        if worker is None:
            return frozenset()
        if not is_resizable(self.job):
            return frozenset(range(worker.replicas))
        members = indexes.parse(recorded.members)
        if not self.published:
            return frozenset(sorted(members or range(worker.replicas))[: self.most_workers])
        return members or frozenset(range(recorded.replicas or worker.replicas))

    @cached_property
    def lacking(self) -> list[int]:
        """The workers by which a running elastic job would grow to the size that it asks for."""
        worker = self.job.spec.worker
        if worker is None or not is_resizable(self.job) or not self.published or self.succeeded_workers:
            return []
        free = (index for index in range(worker.replicas) if index not in self.members)
        return list(islice(free, max(0, self.most_workers - len(self.members))))

    @property
    def most_workers(self) -> int:
        """The workers that the job asks for, as far as they have quota."""
        wanted, admitted = self.job.spec.roles[Role.WORKER].replicas, quota.admitted_workers(self.world)
        return wanted if admitted is None else min(wanted, admitted)

    @cached_property
    def spares(self) -> dict[int, Pod]:
        """Pods with which an elastic job is about to grow. They belong to the next attempt and wait for it to begin."""
        if self.status.finished:
            return {}
        lacking = set(self.lacking)
        return {
            pod.index: pod
            for pod in self.world.pods
            if pod.role is Role.WORKER and pod.index in lacking and pod.attempt == self.status.attempt + 1
        }

    @cached_property
    def succeeded_workers(self) -> frozenset[int]:
        """Workers that have succeeded, including those whose pods are gone."""
        done = {
            index
            for (role, index), pod in self.current.items()
            if role is Role.WORKER and pod.phase is PodPhase.SUCCEEDED
        }
        return indexes.parse(self.status.role(Role.WORKER).finished) | done

    @cached_property
    def missing(self) -> list[Slot]:
        """Replicas that need a pod and have none. A worker that has succeeded needs none."""
        return [
            slot
            for slot in self.slots
            if slot not in self.current and not (slot[0] is Role.WORKER and slot[1] in self.succeeded_workers)
        ]

    @cached_property
    def unscheduled(self) -> list[Pod]:
        """Pods of the current attempt that fit on no node."""
        return [pod for pod in self.current.values() if pod.reason == UNSCHEDULABLE and not pod.node]

    @property
    def workers_built(self) -> int:
        """The workers of an attempt that was published; the job may have been scaled since. 0 if unknown."""
        return self.status.role(Role.WORKER).replicas if self.published else 0

    @property
    def published(self) -> bool:
        """Whether the pods of the current attempt were given their environment."""
        return 0 < self.status.attempt == self.status.publishedAttempt

    @property
    def has_live_workers(self) -> bool:
        """Whether workers can join now: the pods of the attempt have their environment, and new ones will get it."""
        return self.job.spec.live_workers and self.published and self.status.attempt in self.world.environments

    @property
    def waiting_phase(self) -> Phase:
        """The phase of a job that waits for its pods."""
        return Phase.RESTARTING if self.status.phase is Phase.RESTARTING else Phase.PENDING

    def reporting(self, **changes: object) -> Snapshot:
        return replace(self, status=self.status.model_copy(update=changes))


def look(job: PaddleJob, world: World, now: float) -> Snapshot:
    job, scale_rejected = _within_limits(job)
    changed = job.metadata.generation != job.status.observedGeneration
    status = job.status.model_copy(update={"mode": job.mode, "observedGeneration": job.metadata.generation})
    if changed and is_resizable(job):
        # The user may have asked for another size: look for room now instead of when it is due.
        status = status.model_copy(update={"lastResizeTime": ""})
    if not status.finished:
        status = status.model_copy(update={"templateDigest": template_digest(job)})
    # A job without an attempt is new, or was begun by another operator.
    unbegun = status.attempt == 0 and not status.finished
    begins = unbegun or status.phase is Phase.SUSPENDED
    held = quota.is_held(job, world)
    if not status.finished:
        status = status.model_copy(update={"queue": quota.entered_queue(job, world)})
    if begins and not job.spec.suspend and not held:
        status = status.model_copy(
            update={
                "phase": Phase.PENDING,
                "attempt": max(1, status.attempt),
                "startTime": times.format(now),
                "reason": Reason.CREATED if job.status.phase is None else Reason.RESUMED,
                "message": "creating pods",
            }
        )
    return Snapshot(job, world, now, progress.with_reading(status, world.logs, now), scale_rejected, held)


def _within_limits(job: PaddleJob) -> tuple[PaddleJob, str]:
    """The job with the workers it has, and why, if it was scaled to more than an environment can name."""
    before, worker = job.status.role(Role.WORKER).replicas, job.spec.worker
    active = job.status.attempt > 0 and not job.status.finished and not job.spec.suspend
    if not active or worker is None or before in (0, worker.replicas):
        return job, ""
    reason = environment.too_large(job, job.status.attempt)
    if not reason:
        return job, ""
    kept = job.spec.model_copy(update={"worker": worker.model_copy(update={"replicas": before})})
    message = f"training continues with {before} workers instead of {worker.replicas}: {reason}"
    return job.model_copy(update={"spec": kept}), message
