"""The queues of Volcano and Kueue: what their jobs use, the limits, and which PaddleJobs wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from paddlejob.errors import ApiError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Object, Resource
from paddlejob.local.machine.resources import parse_quantity
from paddlejob.web.views.machine import Queue
from paddlejob.web.views.row import Row

VOLCANO_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
KUEUE = "kueue.x-k8s.io"
KUEUE_VERSIONS = ("v1beta2", "v1beta1")
WAITING = ("Pending", "Restarting", "Suspended")
MOST_WAITING = 50
Amounts = dict[str, float]


async def read_queues(client: Client, namespace: str, rows: Iterable[Row]) -> list[Queue]:
    """Empty where neither scheduler is installed, or the caller lacks permission."""
    waiting = sorted((row for row in rows if row.queue and row.phase in WAITING), key=lambda row: row.created or 0)
    return [*await _of_volcano(client, waiting), *await _of_kueue(client, namespace, waiting)]


async def _of_volcano(client: Client, waiting: list[Row]) -> list[Queue]:
    return [volcano_queue(one, waiting) for one in await _listed(client, VOLCANO_QUEUES) or []]


async def _of_kueue(client: Client, namespace: str, waiting: list[Row]) -> list[Queue]:
    for version in KUEUE_VERSIONS:
        found = await _listed(client, Resource(KUEUE, version, "clusterqueues", namespaced=False))
        if found is not None:
            locals_ = await _listed(client, Resource(KUEUE, version, "localqueues"), namespace) or []
            return [kueue_queue(one, locals_, waiting) for one in found]
    return []


def volcano_queue(queue: Object, waiting: list[Row]) -> Queue:
    name, spec, status = queue["metadata"]["name"], queue.get("spec") or {}, queue.get("status") or {}
    used, limits = _amounts(status.get("allocated") or {}), _amounts(spec.get("capability") or {})
    return Queue(
        "Volcano",
        name,
        str(status.get("state") or ""),
        _resources(used, limits),
        pending=int(status.get("pending") or 0) + int(status.get("inqueue") or 0),
        running=int(status.get("running") or 0),
        waiting=[_title(row) for row in waiting if row.queue == f"volcano/{name}"][:MOST_WAITING],
    )


def kueue_queue(queue: Object, local_queues: list[Object], waiting: list[Row]) -> Queue:
    name, status = queue["metadata"]["name"], queue.get("status") or {}
    groups = (queue.get("spec") or {}).get("resourceGroups") or []
    limits = _summed((one, "nominalQuota") for group in groups for one in group.get("flavors") or [])
    used = _summed((one, "total") for one in status.get("flavorsReservation") or status.get("flavorsUsage") or [])
    feeding = {
        f"kueue/{one['metadata']['namespace']}/{one['metadata']['name']}"
        for one in local_queues
        if (one.get("spec") or {}).get("clusterQueue") == name
    }
    active: Object = next((one for one in status.get("conditions") or [] if one.get("type") == "Active"), {})
    return Queue(
        "Kueue",
        name,
        "Active" if active.get("status") == "True" else str(active.get("reason") or ""),
        _resources(used, limits),
        pending=int(status.get("pendingWorkloads") or 0),
        running=int(status.get("admittedWorkloads") or 0),
        waiting=[_title(row) for row in waiting if row.queue in feeding][:MOST_WAITING],
    )


async def _listed(client: Client, resource: Resource, namespace: str = "") -> list[Object] | None:
    """None where the resource does not exist, or may not be listed."""
    try:
        return await client.list(resource, namespace or None)
    except ApiError:
        return None


def _title(row: Row) -> str:
    return f"{row.namespace}/{row.name}"


def _resources(used: Amounts, limits: Amounts) -> dict[str, tuple[float, float | None]]:
    names = [name for name in dict.fromkeys([*limits, *used]) if name != "pods"]
    return {name: (used.get(name, 0.0), limits.get(name)) for name in names}


def _summed(flavors: Iterable[tuple[Object, str]]) -> Amounts:
    """The amounts of a resource, in all flavors together."""
    total: defaultdict[str, float] = defaultdict(float)
    for flavor, key in flavors:
        for one in flavor.get("resources") or []:
            total[one["name"]] += parse_quantity(one.get(key) or 0)
    return dict(total)


def _amounts(quantities: Object) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in quantities.items()}
