"""What the nodes of a cluster have, which jobs have requested how much of it, and the queues of schedulers."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

from paddlejob import contract
from paddlejob.errors import KubeError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NODES, PODS, Object
from paddlejob.kube.resource import Resource as Kind
from paddlejob.local.machine.resources import of_pod, parse_quantity
from paddlejob.web.views.machine import MachineInfo, Node, Queue, Resource

PAUSE = 10.0
"""All pods of a cluster are a long list, and change slowly."""
SHOWN = ("cpu", "memory")
QUEUES = {
    "Volcano": Kind("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False),
    "Kueue": Kind("kueue.x-k8s.io", "v1beta1", "clusterqueues", namespaced=False),
}
COUNTS = ("pending", "running", "inqueue", "pendingWorkloads", "admittedWorkloads", "reservingWorkloads")
ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"


class ClusterMeter:
    def __init__(self) -> None:
        self._read_at = -PAUSE
        self._last = MachineInfo("cluster", "")

    async def read(self, client: Client, title: str, namespace: str) -> MachineInfo:
        """Users who may not list nodes see what is requested in their namespace, and a note."""
        if time.monotonic() - self._read_at < PAUSE:
            return self._last
        note = ""
        try:
            nodes = await client.list(NODES)
            pods = await client.list(PODS, None, field_selector=ACTIVE)
        except KubeError as error:
            nodes, note = [], str(error)
            pods = await client.list(PODS, namespace, field_selector=ACTIVE) if namespace else []
        queues = [queue for kind in QUEUES for queue in await _queues(client, kind)]
        self._last = _info(title, note, nodes, pods, queues)
        self._read_at = time.monotonic()
        return self._last


def _info(title: str, note: str, nodes: list[Object], pods: list[Object], queues: list[Queue]) -> MachineInfo:
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    jobs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        metadata, requested = pod["metadata"], of_pod(pod["spec"])
        held[pod["spec"].get("nodeName") or ""].update(requested)
        if job := (metadata.get("labels") or {}).get(contract.LABEL_JOB):
            jobs[f"{metadata['namespace']}/{job}"].update(requested)
    found = [
        Node(node["metadata"]["name"], _state(node), _capacity(node), _shown(held[node["metadata"]["name"]]))
        for node in nodes
    ]
    names = list(dict.fromkeys([*SHOWN, *(name for node in found for name in node.capacity)]))
    resources = [
        Resource(
            name,
            sum(node.capacity.get(name, 0) for node in found),
            sum(node.held.get(name, 0) for node in found),
            None,
            {job: float(part[name]) for job, part in sorted(jobs.items()) if part[name]},
        )
        for name in names
    ]
    return MachineInfo("cluster", title, note, resources, found, queues)


def _capacity(node: Object) -> dict[str, float]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return _shown({name: parse_quantity(quantity) for name, quantity in allocatable.items()})


def _shown(amounts: dict[str, float] | Counter[str]) -> dict[str, float]:
    """CPUs, memory and accelerators."""
    return {name: float(amount) for name, amount in amounts.items() if name in SHOWN or _is_accelerator(name)}


def _is_accelerator(name: str) -> bool:
    return "/" in name and not name.startswith("hugepages")


def _state(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ("Ready" if ready else "NotReady") + (", cordoned" if node["spec"].get("unschedulable") else "")


async def _queues(client: Client, kind: str) -> list[Queue]:
    """Empty where the scheduler is not installed, or the user may not look."""
    try:
        found = await client.list(QUEUES[kind])
    except KubeError:
        return []
    return [Queue(kind, str(one["metadata"]["name"]), _counts(one.get("status") or {})) for one in found]


def _counts(status: Object) -> str:
    return ", ".join(
        f"{status[name]} {name.removesuffix('Workloads')}" for name in COUNTS if status.get(name) is not None
    )
