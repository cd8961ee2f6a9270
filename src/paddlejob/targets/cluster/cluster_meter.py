"""What the nodes of a cluster have, which jobs have requested how much of it, and the queues of schedulers."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable

from paddlejob import contract
from paddlejob.api.devices import may_be_device
from paddlejob.api.quantity import of_pod, parse_quantity
from paddlejob.errors import KubeError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NODES, PODS, Object
from paddlejob.targets.capacity import MachineInfo, Node, Queue, Resource
from paddlejob.targets.cluster.queues import read_queues
from paddlejob.targets.views import JobView

PAUSE = 10.0
"""All pods of a cluster are a long list, and change slowly."""
SHOWN = ("cpu", "memory")
ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"


class ClusterMeter:
    def __init__(self) -> None:
        self._read_at = -PAUSE
        self._last = MachineInfo("cluster", "")

    async def read(self, client: Client, title: str, namespace: str, views: Iterable[JobView]) -> MachineInfo:
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
        queues = await read_queues(client, namespace, views)
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
    return MachineInfo("cluster", title, note, resources, nodes=found, queues=queues)


def _capacity(node: Object) -> dict[str, float]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return _shown({name: parse_quantity(quantity) for name, quantity in allocatable.items()})


def _shown(amounts: dict[str, float] | Counter[str]) -> dict[str, float]:
    """CPUs, memory and devices."""
    return {name: float(amount) for name, amount in amounts.items() if name in SHOWN or may_be_device(name)}


def _state(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ("Ready" if ready else "NotReady") + (", cordoned" if node["spec"].get("unschedulable") else "")
