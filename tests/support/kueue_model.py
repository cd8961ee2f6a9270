"""Kueue as plain data beside the model of a cluster: it admits, preempts and deactivates the Workload of one job.

The Workload is a real object, made and read by the functions of the operator. Every pod that is created, and every
quota that is given back, is judged at that moment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paddlejob.api.types import PaddleJob
from paddlejob.engine.backend import Outdated
from paddlejob.objects.workload import flavor, workload
from paddlejob.operator.workloads import updated_status
from paddlejob.plan import Action, Delete, Kind, UpdateWorkload, World
from paddlejob.plan.workload import Priority, Queueing, Workload
from tests.support.builders import job
from tests.support.model import Model

QUEUE = {"kueue.x-k8s.io/queue-name": "research"}
FLAVOR = {"spec": {"nodeLabels": {"disk": "ssd"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}}


def queued_job(**options: Any) -> PaddleJob:
    return job(labels={**QUEUE, **options.pop("labels", {})}, **options)


class KueueModel(Model):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.installed = True
        self.quota = 100
        """For how many pods there is quota."""
        self.raw: dict[str, Any] | None = None
        """The Workload."""
        self.priority: Priority | None = None
        self.error = ""
        self.made = 0
        """How many Workloads were created."""

    @property
    def workload(self) -> Workload | None:
        return workload(self.raw).value if self.raw else None

    @property
    def used(self) -> int:
        """The quota that the job holds."""
        found = self.workload
        if found is None or not found.has_quota or found.is_true("Finished"):
            return 0
        return sum(one.count - found.reclaimable.get(role, 0) for role, one in found.assignments.items())

    def world(self) -> World:
        version = "v1beta2" if self.installed else ""
        found = Queueing(version, self.workload, {"ssd": flavor(FLAVOR)}, self.priority, self.error)
        return replace(super().world(), queueing=found)

    async def perform(self, job: PaddleJob, action: Action) -> None:
        before = {**self.pods}
        match action:
            case UpdateWorkload():
                self._count_down()
                self.done.append(action)
                self._update(action)
            case Delete(Kind.WORKLOAD, _, uid):
                self._count_down()
                self.done.append(action)
                if self.raw and self.raw["metadata"]["uid"] == uid:
                    assert not self._live() or not self.used or not self._is_queued(), "quota of running pods"
                    self.raw = None
            case _:
                await super().perform(job, action)
        if self.job is None:
            self.raw = None
        for name in self.pods.keys() - before.keys():
            self._judge(name)

    def _is_queued(self) -> bool:
        return self.job is not None and bool(self.job.metadata.labels)

    def _judge(self, name: str) -> None:
        """A new pod needs quota, unless the job is in no queue or Kueue is gone."""
        if not self._is_queued() or not self.installed:
            return
        found = self.workload
        assert found is not None and found.may_run, f"{name} was created without quota"
        role = self.pods[name].role
        live = sum(pod.role is role and not pod.ended for pod in self.pods.values())
        assert live <= found.assignments[role].count - found.reclaimable.get(role, 0), f"{name} exceeds the quota"

    def _create(self, kind: Kind, name: str, manifest: dict[str, Any]) -> None:
        super()._create(kind, name, manifest)
        if kind is Kind.WORKLOAD and self.raw is None:
            self.made += 1
            about = manifest["metadata"] | {"uid": f"workload-{self.made}", "resourceVersion": "1", "generation": 1}
            self.raw = {**manifest, "metadata": about, "status": {}}

    def _update(self, action: UpdateWorkload) -> None:
        if self.raw is None or self.raw["metadata"]["resourceVersion"] != action.workload.version:
            raise Outdated
        assert not action.release or not self.pods, "quota is given back while pods exist"
        finishes = any(one.type == "Finished" for one in action.conditions)
        assert not finishes or not self._live(), "the Workload finishes while pods run"
        self._write(updated_status(self.raw, action, self.now))

    def _live(self) -> bool:
        return any(not pod.ended for pod in self.pods.values())

    def _write(self, status: dict[str, Any]) -> None:
        assert self.raw is not None
        version = str(int(self.raw["metadata"]["resourceVersion"]) + 1)
        self.raw = {**self.raw, "metadata": self.raw["metadata"] | {"resourceVersion": version}, "status": status}

    # Kueue, and its users

    def set(self, reason: str, message: str = "", **conditions: bool) -> None:
        assert self.raw is not None
        kept = [one for one in self.raw["status"].get("conditions") or [] if one["type"] not in conditions]
        new = [
            {"type": type_, "status": str(true), "reason": reason, "message": message}
            for type_, true in conditions.items()
        ]
        self._write({**self.raw["status"], "conditions": [*kept, *new]})

    def activate(self, active: bool) -> None:
        assert self.raw is not None
        self.raw = {**self.raw, "spec": self.raw["spec"] | {"active": active}}
        self._write(self.raw["status"])

    def preempt(self) -> None:
        if self.workload and self.workload.has_quota and not self.workload.is_true("Finished"):
            self.set("Preempted", "Preempted to accommodate a workload", Evicted=True)

    async def settle(self, limit: int = 60) -> None:
        """Until Kueue changes nothing any more either."""
        before: object = object()
        while before != self.raw:
            before = self.raw
            await super().settle(limit)

    def tick(self) -> None:
        super().tick()
        found = self.workload
        if found is None or found.is_true("Finished"):
            return
        if not found.active:
            if not found.is_true("Evicted") and found.has_quota:
                self.set("Deactivated", "The workload is deactivated", Evicted=True)
        elif not found.has_quota:
            self._admit()

    def _admit(self) -> None:
        assert self.raw is not None
        sets = self.raw["spec"]["podSets"]
        others = sum(one["count"] for one in sets if "minCount" not in one)
        counts = {one["name"]: one["count"] for one in sets}
        for one in sets:
            if "minCount" in one:
                counts[one["name"]] = min(one["count"], self.quota - others)
        if sum(counts.values()) > self.quota or any(counts[one["name"]] < one.get("minCount", 0) for one in sets):
            if not self.workload.conditions.get("QuotaReserved"):
                self.set("Pending", "insufficient unused quota for cpu in flavor ssd", QuotaReserved=False)
            return
        assigned = [{"name": name, "count": count, "flavors": {"cpu": "ssd"}} for name, count in counts.items()]
        self._write({**self.raw["status"], "admission": {"clusterQueue": "all", "podSetAssignments": assigned}})
        self.set("QuotaReserved", "", QuotaReserved=True, Admitted=True, Evicted=False)
