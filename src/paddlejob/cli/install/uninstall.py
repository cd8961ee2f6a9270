"""What `pdj uninstall` removes, and what is deleted along with it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.api.crd import crd
from paddlejob.cli.install.install import RESOURCES, is_own_namespace, remove, title
from paddlejob.client.describe.humanize import plural
from paddlejob.errors import BadInput, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.operator.manifests import NAME, manifests
from paddlejob.targets.cluster.operators import find_operators

Object = dict[str, Any]
TIMEOUT = 180.0


@dataclass(frozen=True)
class Removal:
    objects: list[Object]
    """In the order of removal. The CRD, and with it all jobs, goes while the operator can still clean up after them."""
    warnings: list[str]


async def plan_removal(client: Client, namespace: str, keep_jobs: bool) -> Removal:
    """Find what to remove, and what the user loses with it."""
    operators = await find_operators(client) or []
    installed = next((operator for operator in operators if operator.namespace == namespace), None)
    if installed is None and (others := ", ".join(operator.namespace for operator in operators)):
        raise BadInput(f"no operator in namespace {namespace}; choose the namespace of one with -n: {others}")
    if installed and installed.release:
        raise BadInput(f"{installed} belongs to the Helm release {installed.release}; remove it with `helm uninstall`")
    objects = manifests(namespace=namespace, watch=installed.watch if installed else "")
    warnings = []
    if await is_own_namespace(client, namespace):
        warnings += await _namespace_contents(client, namespace)
    else:
        objects = [obj for obj in objects if obj["kind"] != "Namespace"]
    if keep_jobs or len(operators) > 1:
        reason = "" if keep_jobs else " because another operator is installed"
        warnings.append(f"keeps the PaddleJob CRD and all jobs{reason}")
        return Removal(list(reversed(objects)), warnings)
    return Removal([crd(), *reversed(objects)], [*await _jobs(client), *warnings])


async def perform_removal(client: Client, removal: Removal, say: Callable[[str], None]) -> None:
    """Remove one object after another, and wait for each."""
    removed = 0
    for obj in removal.objects:
        if await remove(client, obj):
            await wait_until_removed(client, obj)
            removed += 1
            say(f"{title(obj)}: removed")
    if not removed:
        say("No operator is installed; nothing removed.")


async def _jobs(client: Client) -> list[str]:
    try:
        jobs = await client.list(PADDLEJOBS)
    except NotFound:
        return []
    if not jobs:
        return []
    unfinished = sum(not (job.get("status") or {}).get("completionTime") for job in jobs)
    counts = Counter(job["metadata"]["namespace"] for job in jobs)
    namespaces = ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
    return [f"deletes {plural(len(jobs), 'PaddleJob')} ({unfinished} unfinished) with all pods and logs: {namespaces}"]


async def _namespace_contents(client: Client, namespace: str) -> list[str]:
    pods = [pod["metadata"]["name"] for pod in await client.list(PODS, namespace)]
    pods = [name for name in pods if not name.startswith(f"{NAME}-")]
    claims = [claim["metadata"]["name"] for claim in await client.list(PERSISTENT_VOLUME_CLAIMS, namespace)]
    lines = [f"deletes namespace {namespace} and everything in it"]
    if pods:
        lines.append(f"deletes {plural(len(pods), 'pod')} in namespace {namespace}: {_shortened(pods)}")
    if claims:
        title = plural(len(claims), "persistent volume claim")
        lines.append(f"deletes {title} in namespace {namespace} with all data: {_shortened(claims)}")
    return lines


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


async def wait_until_removed(client: Client, obj: Object) -> None:
    metadata = obj["metadata"]
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            await client.get(RESOURCES[obj["kind"]], metadata["name"], metadata.get("namespace"))
        except NotFound:
            return
        if time.monotonic() > deadline:
            raise NotPossible(
                f"{title(obj)} is still being removed after {TIMEOUT:.0f} s; check its finalizers with "
                f"`kubectl get {obj['kind'].lower()} {metadata['name']} -o yaml`"
            )
        await asyncio.sleep(0.3)
