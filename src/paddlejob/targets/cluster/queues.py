"""The queues of Volcano and Kueue: what their jobs use, the limits, and which PaddleJobs wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from paddlejob import contract
from paddlejob.api.quantity import parse_quantity
from paddlejob.errors import ApiError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Object, Resource
from paddlejob.targets.capacity import Queue
from paddlejob.targets.views import JobView

VOLCANO_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
WAITING = ("Pending", "Restarting", "Suspended")
MOST_WAITING = 50
Amounts = dict[str, float]


async def read_queues(client: Client, namespace: str, views: Iterable[JobView]) -> list[Queue]:
    """Empty where neither scheduler is installed, or the caller lacks permission."""
    waiting = sorted(
        (view for view in views if view.phase in WAITING and view.queue),
        key=lambda view: view.job.metadata.creationTimestamp or "",
    )
    return [*await _of_volcano(client, waiting), *await _of_kueue(client, namespace, waiting)]


async def _of_volcano(client: Client, waiting: list[JobView]) -> list[Queue]:
    return [volcano_queue(one, waiting) for one in await _listed(client, VOLCANO_QUEUES) or []]


async def _of_kueue(client: Client, namespace: str, waiting: list[JobView]) -> list[Queue]:
    """By the newest version that is served. Users who may not list ClusterQueues see the LocalQueues they submit to."""
    for version in contract.KUEUE_VERSIONS:
        shared = await _listed(client, Resource(contract.KUEUE_GROUP, version, "clusterqueues", namespaced=False))
        own = await _listed(client, Resource(contract.KUEUE_GROUP, version, "localqueues"), namespace)
        if shared is not None:
            return [kueue_queue(one, own or [], waiting) for one in shared]
        if own is not None:
            return [local_queue(one, waiting) for one in own]
    return []


def volcano_queue(queue: Object, waiting: list[JobView]) -> Queue:
    name, spec, status = queue["metadata"]["name"], queue.get("spec") or {}, queue.get("status") or {}
    used, limits = _amounts(status.get("allocated") or {}), _amounts(spec.get("capability") or {})
    return Queue(
        "Volcano",
        name,
        str(status.get("state") or ""),
        _resources(used, limits),
        pending=int(status.get("pending") or 0) + int(status.get("inqueue") or 0),
        running=int(status.get("running") or 0),
        waiting=[_title(view) for view in waiting if view.queue == f"volcano/{name}"][:MOST_WAITING],
    )


def kueue_queue(queue: Object, local_queues: list[Object], waiting: list[JobView]) -> Queue:
    name = queue["metadata"]["name"]
    groups = (queue.get("spec") or {}).get("resourceGroups") or []
    limits = _summed((one, "nominalQuota") for group in groups for one in group.get("flavors") or [])
    feeding = {
        f"kueue/{one['metadata']['namespace']}/{one['metadata']['name']}"
        for one in local_queues
        if (one.get("spec") or {}).get("clusterQueue") == name
    }
    return _of_status(name, queue, limits, [view for view in waiting if view.queue in feeding])


def local_queue(queue: Object, waiting: list[JobView]) -> Queue:
    """Without limits: they belong to its ClusterQueue."""
    name = f"{queue['metadata']['namespace']}/{queue['metadata']['name']}"
    return _of_status(name, queue, {}, [view for view in waiting if view.queue == f"kueue/{name}"])


def _of_status(name: str, queue: Object, limits: Amounts, waiting: list[JobView]) -> Queue:
    """What both kinds of queue report in the same way."""
    status = queue.get("status") or {}
    active: Object = next((one for one in status.get("conditions") or [] if one.get("type") == "Active"), {})
    used = _summed((one, "total") for one in status.get("flavorsReservation") or status.get("flavorsUsage") or [])
    return Queue(
        "Kueue",
        name,
        "Active" if active.get("status") == "True" else str(active.get("reason") or ""),
        _resources(used, limits),
        pending=int(status.get("pendingWorkloads") or 0),
        running=int(status.get("admittedWorkloads") or 0),
        waiting=[_title(view) for view in waiting][:MOST_WAITING],
    )


async def _listed(client: Client, resource: Resource, namespace: str = "") -> list[Object] | None:
    """None where the resource does not exist, or may not be listed."""
    try:
        return await client.list(resource, namespace or None)
    except ApiError:
        return None


def _title(view: JobView) -> str:
    return f"{view.job.namespace}/{view.job.name}"


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
