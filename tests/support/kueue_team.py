"""A namespace of a real cluster with a queue of a real Kueue, and jobs in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sized
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NODES, Resource
from paddlejob.objects.resources import PADDLEJOBS, WORKLOADS
from tests.support.builders import document, template
from tests.support.changes import Changes, changes
from tests.support.kubelet import Kubelet
from tests.support.operator_stage import OperatorStage

Object = dict[str, Any]
API = "kueue.x-k8s.io/v1beta2"
FLAVORS = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", namespaced=False)
CLUSTER_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", namespaced=False)
LOCAL_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "localqueues")
CLASSES = Resource("kueue.x-k8s.io", "v1beta2", "workloadpriorityclasses", namespaced=False)
TOPOLOGIES = Resource("kueue.x-k8s.io", "v1beta2", "topologies", namespaced=False)
TOLERATION = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}


class Team:
    """A namespace with a queue, and jobs in it whose workers request one CPU each."""

    def __init__(self, client: Client, kubelet: Kubelet, namespace: str) -> None:
        self.client = client
        self.kubelet = kubelet
        self.namespace = namespace

    async def quota(self, cpus: int, topology: str = "") -> None:
        """Create the queue `research`, with this quota."""
        flavor = f"ssd-{self.namespace}"
        spec: Object = {"nodeLabels": {"disk": "ssd"}, "tolerations": [TOLERATION]}
        spec |= {"topologyName": topology} if topology else {}
        await self.client.create(FLAVORS, kueue("ResourceFlavor", flavor, spec))
        resources = [{"name": "cpu", "nominalQuota": cpus}]
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": resources}]}],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        }
        await self.client.create(CLUSTER_QUEUES, kueue("ClusterQueue", self.namespace, spec))
        local = kueue("LocalQueue", "research", {"clusterQueue": self.namespace})
        local["metadata"]["namespace"] = self.namespace
        await self.client.create(LOCAL_QUEUES, local)
        for name, value in (("low", 1), ("high", 10)):
            made = {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}
            if not await self._exists(CLASSES, name):
                await self.client.create(CLASSES, made)

    @asynccontextmanager
    async def zones(self, label: str, zones: Mapping[str, str]) -> AsyncIterator[str]:
        """Nodes of one CPU each in zones, and the topology of these, whose name it yields."""
        levels = [{"nodeLabel": label}, {"nodeLabel": "kubernetes.io/hostname"}]
        await self.client.create(TOPOLOGIES, kueue("Topology", self.namespace, {"levels": levels}))
        for name, zone in zones.items():
            labels = {"disk": "ssd", label: zone, "kubernetes.io/hostname": name}
            made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            await self.client.create(NODES, made)
            # The server gives a new node a taint that a node controller would remove.
            await self.client.patch(NODES, name, None, {"spec": {"taints": None}})
            room = {"cpu": "1", "pods": "10"}
            ready = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": room, "allocatable": room}
            await self.client.patch(NODES, name, None, {"status": ready}, subresource="status")
        try:
            yield self.namespace
        finally:
            for name in zones:
                await self.client.delete(NODES, name)

    async def submit(self, name: str, priority: str = "", **options: Any) -> OperatorStage:
        labels = {"kueue.x-k8s.io/queue-name": "research"}
        if priority:
            labels["kueue.x-k8s.io/priority-class"] = priority
        one_cpu = template(resources={"requests": {"cpu": "1"}})
        worker = {"template": one_cpu, **options.pop("worker_", {})}
        made = document(name, labels=labels, worker_=worker, **options)
        made["metadata"]["namespace"] = self.namespace
        await self.client.create(PADDLEJOBS, made)
        return OperatorStage(self.client, self.kubelet, self.namespace, name)

    def changes(self, resource: Resource) -> AbstractAsyncContextManager[Changes]:
        """All changes to objects of the namespace from now on."""
        return changes(self.client, resource, self.namespace)

    async def workload(self, name: str) -> Object | None:
        """The Workload of a job."""
        selector = f"batch.paddlepaddle.org/job={name}"
        found = await self.client.list(WORKLOADS, self.namespace, label_selector=selector)
        return found[0] if found else None

    async def condition(self, name: str, type_: str) -> str:
        found = await self.workload(name)
        conditions = ((found or {}).get("status") or {}).get("conditions") or []
        return next((one["status"] for one in conditions if one["type"] == type_), "")

    async def used(self) -> str:
        """The quota that Kueue counts as used, in CPUs."""
        found = await self.client.get(CLUSTER_QUEUES, self.namespace)
        flavors = (found.get("status") or {}).get("flavorsUsage") or [{"resources": [{"total": "?"}]}]
        return str(flavors[0]["resources"][0]["total"])

    async def _exists(self, resource: Resource, name: str) -> bool:
        try:
            await self.client.get(resource, name)
        except NotFound:
            return False
        return True


def kueue(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def until(true: Callable[[], Awaitable[Any]], seconds: float = 90) -> float:
    """Wait until it is true; returns the seconds that it took."""
    began = time.monotonic()
    while not await true():
        assert time.monotonic() - began < seconds, "it never became true"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


def is_of(found: Object, job: str) -> bool:
    """Whether a pod or a Workload belongs to the job."""
    return bool(found["metadata"]["labels"]["batch.paddlepaddle.org/job"] == job)


def has(workload: Object, type_: str, status: str) -> bool:
    """Whether a condition of a Workload has this status."""
    conditions = (workload.get("status") or {}).get("conditions") or []
    return any((one["type"], one["status"]) == (type_, status) for one in conditions)


async def says(stage: OperatorStage, text: str) -> bool:
    return text in (await stage.status()).get("message", "")


async def has_length(found: Awaitable[Sized], expected: int) -> bool:
    return len(await found) == expected


async def is_(found: Awaitable[Any], expected: Any) -> bool:
    return bool(await found == expected)
