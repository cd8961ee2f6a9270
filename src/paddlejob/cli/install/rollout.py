"""Waiting until the operator runs, and the reason why it does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CRDS, DEPLOYMENTS, PODS

Object = dict[str, Any]
PAUSE = 0.5
CANNOT_PULL = "cannot pull the image {image}; check the name and whether the nodes may pull it (--image)"
UNLIKELY_TO_RECOVER = {
    "ErrImagePull": CANNOT_PULL,
    "ImagePullBackOff": CANNOT_PULL,
    "ErrImageNeverPull": "the image {image} is not on the node and must not be pulled",
    "InvalidImageName": "{image} is not a valid image name; change --image",
    "CrashLoopBackOff": "the operator keeps crashing; check `kubectl logs -n {namespace} deployment/{name}`",
    "CreateContainerConfigError": "cannot create the container",
}
"""Reasons of waiting containers that time rarely resolves."""
GRACE_SECONDS = 15.0
"""How long such a reason must last before the installation gives up."""


@dataclass(frozen=True)
class Progress:
    message: str
    permanent: bool = False


async def wait_until_established(client: Client, name: str, seconds: float = 60.0) -> None:
    """Wait until the API server serves a new CRD."""
    deadline = time.monotonic() + seconds
    while not _is_true(await client.get(CRDS, name), "Established"):
        if time.monotonic() > deadline:
            raise NotPossible(
                f"the API server does not serve {name} after {seconds:.0f} s; check `kubectl describe crd {name}`"
            )
        await asyncio.sleep(0.2)


async def wait_until_available(client: Client, deployment: Object, seconds: float, say: Callable[[str], None]) -> None:
    """Report progress as it changes; raises NotPossible with the reason on a timeout or a lasting error."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    start = since = time.monotonic()
    last = Progress("")
    while True:
        current = await client.get(DEPLOYMENTS, name, namespace)
        if is_rolled_out(current):
            return
        progress = await _progress(client, current)
        now = time.monotonic()
        if progress != last:
            say(progress.message)
            last, since = progress, now
        if (progress.permanent and now - since > GRACE_SECONDS) or now - start > seconds:
            raise NotPossible(f"the operator is not running after {now - start:.0f} s: {progress.message}")
        await asyncio.sleep(PAUSE)


async def _progress(client: Client, deployment: Object) -> Progress:
    status, spec = deployment.get("status") or {}, deployment["spec"]
    rejected = next((one for one in status.get("conditions") or [] if one["type"] == "ReplicaFailure"), None)
    if rejected and rejected["status"] == "True":
        return Progress(f"the API server rejects its pods: {rejected.get('message', '')}", permanent=True)
    labels = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())
    for pod in await client.list(PODS, deployment["metadata"]["namespace"], label_selector=labels):
        if progress := pod_progress(pod, deployment):
            return progress
    return Progress(f"{status.get('availableReplicas', 0)} of {spec.get('replicas', 1)} replicas ready")


def pod_progress(pod: Object, deployment: Object) -> Progress | None:
    """What keeps the pod from running; None if nothing is known."""
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    for container in status.get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason")
        if reason in UNLIKELY_TO_RECOVER:
            image = pod["spec"]["containers"][0]["image"]
            message = UNLIKELY_TO_RECOVER[reason].format(image=image, **deployment["metadata"])
            details = f' ("{waiting["message"].strip()}")' if waiting.get("message") else ""
            return Progress(f"pod {name}: {reason}: {message}{details}", permanent=True)
    scheduled = next((one for one in status.get("conditions") or [] if one["type"] == "PodScheduled"), None)
    if scheduled and scheduled["status"] == "False":
        return Progress(f"pod {name} is not scheduled: {scheduled.get('message', '')}")
    return None


def is_rolled_out(deployment: Object) -> bool:
    """Whether all replicas are available and none of an older version remains."""
    status, replicas = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    observed = int(status.get("observedGeneration", 0)) >= deployment["metadata"]["generation"]
    return observed and all(
        status.get(count, 0) == replicas for count in ("updatedReplicas", "replicas", "availableReplicas")
    )


def _is_true(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
