"""Kueue, as the operator uses it: what it says about a job, and the status of the job's Workload."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from paddlejob import contract
from paddlejob.api.types import PaddleJob
from paddlejob.engine.backend import Outdated
from paddlejob.errors import ApiError, Conflict, Forbidden, KubeError, NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PRIORITY_CLASSES, Object, Resource
from paddlejob.objects.workload import flavor
from paddlejob.operator.informers import Informers
from paddlejob.plan import UpdateWorkload
from paddlejob.plan.quota import priority_class, queue_of
from paddlejob.plan.times import format
from paddlejob.plan.workload import Condition, PodUpdate, Priority, Queueing, Workload

REMEMBERED_SECONDS = 20.0
"""Flavors and priority classes change rarely, and many jobs share one."""


class Unreadable(Exception):
    """A flavor or a priority class cannot be read."""


@dataclass
class Workloads:
    client: Client
    informers: Informers
    _known: dict[tuple[str, str], tuple[float, Object]] = field(default_factory=dict)
    """Flavors and priority classes by kind and name, and when each was read."""

    async def observe(self, job: PaddleJob) -> Queueing:
        found = self.informers.workloads.by_index((job.namespace, job.metadata.uid))
        workload = next((one.value for one in found), None)
        version = "" if self.informers.workloads.absent else self.informers.workloads.resource.version
        queueing = Queueing(version, workload)
        if not version or not queue_of(job) or job.status.finished:
            return queueing
        try:
            if workload is None:
                return Queueing(version, priority=await self._priority(job))
            return Queueing(version, workload, await self._flavors(workload))
        except Unreadable as error:
            return Queueing(version, workload, error=str(error))

    async def update(self, job: PaddleJob, action: UpdateWorkload) -> None:
        """Only the version that was planned from is changed: Kueue may have admitted the job again since."""
        resource, name = self.informers.workloads.resource, action.workload.name
        try:
            found = await self.client.get(resource, name, job.namespace)
            if found["metadata"]["resourceVersion"] == action.workload.version:
                changed = {**found, "status": updated_status(found, action, self.client.server_time())}
                self.informers.record_write(resource, await self.client.replace_status(resource, changed))
                return
        except (NotFound, Conflict) as error:
            raise Outdated from error
        self.informers.record_write(resource, found)
        raise Outdated

    async def _flavors(self, workload: Workload) -> dict[str, PodUpdate]:
        names: Iterable[str] = {name for one in workload.assignments.values() for name in one.flavors}
        resource = self._kueue("resourceflavors", "ResourceFlavor")
        return {name: flavor(await self._read(resource, name)) for name in sorted(names)}

    async def _priority(self, job: PaddleJob) -> Priority | None:
        name = priority_class(job)
        if job.metadata.labels.get(contract.LABEL_QUEUE_PRIORITY):
            found = await self._read(self._kueue("workloadpriorityclasses", "WorkloadPriorityClass"), name)
            return Priority(name, found["value"])
        if not name:
            return None
        found = await self._read(PRIORITY_CLASSES, name)
        return Priority(name, found["value"], of_pods=True)

    def _kueue(self, plural: str, kind: str) -> Resource:
        return Resource(contract.KUEUE_GROUP, self.informers.workloads.resource.version, plural, False, kind)

    async def _read(self, resource: Resource, name: str) -> Object:
        read_at, found = self._known.get((resource.plural, name), (0.0, {}))
        if read_at and time.monotonic() - read_at < REMEMBERED_SECONDS:
            return found
        try:
            found = await self.client.get(resource, name)
        except NotFound as error:
            raise Unreadable(f"{resource.kind} {name} does not exist; create it, or name another") from error
        except Forbidden as error:
            advice = "an operator of one namespace needs a ClusterRole for this (docs/howto/kueue.md)"
            raise Unreadable(f"{resource.kind} {name} cannot be read; {advice}: {error.message}") from error
        except (ApiError, KubeError) as error:
            raise Unreadable(f"{resource.kind} {name} cannot be read; retrying: {error}") from error
        self._known[(resource.plural, name)] = (time.monotonic(), found)
        return found


def updated_status(workload: Object, action: UpdateWorkload, now: float) -> Object:
    """The status of a Workload after the action."""
    status: Object = dict(workload.get("status") or {})
    moment, generation = format(now), workload["metadata"].get("generation", 0)
    for condition in action.conditions:
        status["conditions"] = _with_condition(status.get("conditions") or [], condition, moment, generation)
    if action.release:
        status.pop("admission", None)
    if action.reclaimable is not None:
        status["reclaimablePods"] = [{"name": role, "count": count} for role, count in action.reclaimable.items()]
    return status


def _with_condition(conditions: list[Object], new: Condition, now: str, generation: int) -> list[Object]:
    before = next((one for one in conditions if one["type"] == new.type), {})
    status = "True" if new.true else "False"
    made = {
        "type": new.type,
        "status": status,
        "reason": new.reason,
        "message": new.message,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == status else now,
    }
    return [*(one for one in conditions if one["type"] != new.type), made]
