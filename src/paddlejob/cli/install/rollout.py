"""Waiting until the operator runs, and why it does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, DEPLOYMENTS, PODS

Object = dict[str, Any]
PAUSE = 0.5
HOPELESS = {
    "ErrImagePull": "the image {image} cannot be pulled: is the name right, and may the nodes pull it? (--image)",
    "ImagePullBackOff": "the image {image} cannot be pulled: is the name right, and may the nodes pull it? (--image)",
    "ErrImageNeverPull": "the image {image} is not on the node and may not be pulled",
    "InvalidImageName": "{image} is no name of an image; change --image",
    "CrashLoopBackOff": "the operator starts and ends; see kubectl logs -n {namespace} deployment/{name}",
    "CreateContainerConfigError": "its container cannot be made",
}
"""What waiting hardly helps against."""
PATIENCE = 15.0


async def until_established(client: Client, name: str, seconds: float = 60.0) -> None:
    """The API server serves a new kind a moment after its definition."""
    ends = time.monotonic() + seconds
    while not _is(await client.get(CRDS, name), "Established"):
        if time.monotonic() > ends:
            raise NotPossible(
                f"after {seconds:.0f} s the API server does not serve {name}; see kubectl describe crd {name}"
            )
        await asyncio.sleep(0.2)


async def until_available(client: Client, deployment: Object, seconds: float, say: Callable[[str], None]) -> None:
    """Say what is waited for as it changes; NotPossible with the reason where it will not come or comes too late."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    begun, since, said = time.monotonic(), time.monotonic(), ""
    while True:
        found = await client.get(DEPLOYMENTS, name, namespace)
        if _is_rolled_out(found):
            return
        standing, hopeless = await _standing(client, found)
        if standing != said:
            say(standing)
            said, since = standing, time.monotonic()
        if (hopeless and time.monotonic() - since > PATIENCE) or time.monotonic() - begun > seconds:
            waited = time.monotonic() - begun
            raise NotPossible(f"the operator does not run after {waited:.0f} s: {standing}")
        await asyncio.sleep(PAUSE)


async def _standing(client: Client, deployment: Object) -> tuple[str, bool]:
    """Why it is not there yet, and whether waiting hardly helps."""
    status, spec = deployment.get("status") or {}, deployment["spec"]
    refused = next((one for one in status.get("conditions") or [] if one["type"] == "ReplicaFailure"), None)
    if refused and refused["status"] == "True":
        return f"its pods are refused: {refused.get('message', '')}", True
    labels = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())
    for pod in await client.list(PODS, deployment["metadata"]["namespace"], label_selector=labels):
        if found := _trouble(pod, deployment):
            return found
    return f"{status.get('availableReplicas', 0)} of {spec.get('replicas', 1)} replicas are ready", False


def _trouble(pod: Object, deployment: Object) -> tuple[str, bool] | None:
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    for container in status.get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in HOPELESS:
            words = HOPELESS[waiting["reason"]].format(
                image=pod["spec"]["containers"][0]["image"], **deployment["metadata"]
            )
            return f"pod {name}: {waiting['reason']}: {words}{_quoted(waiting.get('message'))}", True
    placed = next((one for one in status.get("conditions") or [] if one["type"] == "PodScheduled"), None)
    if placed and placed["status"] == "False":
        return f"pod {name} has no node: {placed.get('message', '')}", False
    return None


def _is_rolled_out(deployment: Object) -> bool:
    """Of the version that was asked for, and none of an older one left."""
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    seen = int(status.get("observedGeneration", 0)) >= deployment["metadata"]["generation"]
    return seen and all(
        status.get(count, 0) == wanted for count in ("updatedReplicas", "replicas", "availableReplicas")
    )


def _is(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


def _quoted(words: str | None) -> str:
    return f' ("{words.strip()}")' if words else ""
