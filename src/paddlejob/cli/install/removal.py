"""What `pdj uninstall` removes, and what goes with it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.api.crd import crd
from paddlejob.cli.install.install import RESOURCES, is_ours, remove, title
from paddlejob.cli.install.operators import find_operators
from paddlejob.errors import BadInput, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.operator.manifests import NAME, manifests

Object = dict[str, Any]
GONE_WITHIN = 180.0


@dataclass(frozen=True)
class Removal:
    objects: list[Object]
    """In the order to remove them: with the definition go all jobs, while the operator can still see to them."""
    warnings: list[str]


async def look(client: Client, namespace: str, keep_jobs: bool) -> Removal:
    operators = await find_operators(client) or []
    installed = next((one for one in operators if one.namespace == namespace), None)
    if installed is None and (others := ", ".join(one.namespace for one in operators)):
        raise BadInput(f"there is no operator in namespace {namespace}; there is one in {others} (-n)")
    if installed and installed.release:
        raise BadInput(f"{installed} is of Helm's release {installed.release}; remove it with `helm uninstall`")
    objects = manifests(namespace=namespace, watch=installed.watch if installed else "")
    warnings = []
    if await _goes(client, namespace):
        warnings += await _contents(client, namespace)
    else:
        objects = [one for one in objects if one["kind"] != "Namespace"]
    if keep_jobs or len(operators) > 1:
        warnings.append(
            "the definition of PaddleJob and all jobs stay" + ("" if keep_jobs else ": another operator is there")
        )
        return Removal(list(reversed(objects)), warnings)
    return Removal([crd(), *reversed(objects)], [*await _jobs(client), *warnings])


async def carry_out(client: Client, removal: Removal, say: Callable[[str], None]) -> None:
    """One after another, each gone before the next."""
    removed = 0
    for obj in removal.objects:
        if await remove(client, obj):
            await _until_gone(client, obj)
            removed += 1
            say(f"{title(obj)}: removed")
    if not removed:
        say("nothing was installed; nothing is removed")


async def _goes(client: Client, namespace: str) -> bool:
    """Whether the namespace was made by the installation, and nothing of the cluster's own."""
    try:
        return is_ours(await client.get(NAMESPACES, namespace))
    except NotFound:
        return False


async def _jobs(client: Client) -> list[str]:
    try:
        jobs = await client.list(PADDLEJOBS)
    except NotFound:
        return []
    if not jobs:
        return []
    active = sum(not (one.get("status") or {}).get("completionTime") for one in jobs)
    places = Counter(one["metadata"]["namespace"] for one in jobs)
    listed = ", ".join(f"{count} in {name}" for name, count in sorted(places.items()))
    return [f"{len(jobs)} PaddleJobs with all their pods and logs ({active} have not ended): {listed}"]


async def _contents(client: Client, namespace: str) -> list[str]:
    pods = [
        one["metadata"]["name"]
        for one in await client.list(PODS, namespace)
        if not one["metadata"]["name"].startswith(f"{NAME}-")
    ]
    claims = [one["metadata"]["name"] for one in await client.list(PERSISTENT_VOLUME_CLAIMS, namespace)]
    found = [f"namespace {namespace} with everything in it"]
    found += [f"{len(pods)} pods in namespace {namespace}: {_some(pods)}"] if pods else []
    found += (
        [f"{len(claims)} volume claims in namespace {namespace}, and what they hold: {_some(claims)}"] if claims else []
    )
    return found


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


async def _until_gone(client: Client, obj: Object) -> None:
    metadata = obj["metadata"]
    ends = time.monotonic() + GONE_WITHIN
    while True:
        try:
            await client.get(RESOURCES[obj["kind"]], metadata["name"], metadata.get("namespace"))
        except NotFound:
            return
        if time.monotonic() > ends:
            raise NotPossible(
                f"{title(obj)} is still being removed after {GONE_WITHIN:.0f} s; see what holds it: "
                f"kubectl get {obj['kind'].lower()} {metadata['name']} -o yaml"
            )
        await asyncio.sleep(0.3)
