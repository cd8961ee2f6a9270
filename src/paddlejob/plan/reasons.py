"""Why a job is not running yet, in words. The first sentence says what to do next."""

from __future__ import annotations

import re

from paddlejob.plan import gang, names
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

IMAGE_TROUBLE = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
)
Reason = tuple[str, str]


def waiting(s: Snapshot) -> Reason | None:
    """From the pods as they are; None while everything goes its way."""
    pods = [pod for pod in s.current.values() if pod.phase in (PodPhase.PENDING, PodPhase.WAITING)]
    return _unplaced(s, pods) or _image(pods) or _stuck(s, pods)


def _unplaced(s: Snapshot, pods: list[Pod]) -> Reason | None:
    stuck = [pod for pod in pods if pod.reason == "Unschedulable"]
    group = gang.group(s) if gang.wanted(s.job) else None
    if group and group.phase in ("Pending", "Inqueue", "") and len(stuck) + len(s.missing) > 0:
        words = group.message or (stuck[0].message if stuck else "no word from the scheduler yet")
        return "GangNotAdmitted", (
            f"pod group {group.name} is not admitted, so no pod of the job starts; free resources in its queue or "
            f"lower what the job asks for: {words}"
        )
    if not stuck:
        return None
    telling = next((pod for pod in stuck if "nodes are available" in pod.message), stuck[0])
    words = telling.message
    claim = re.search(r'persistentvolumeclaim "([^"]+)" not found', words)
    if claim:
        return "VolumeMissing", (
            f"the claim {claim[1]} does not exist in namespace {s.job.namespace}; create it or correct claimName: "
            f"{words}"
        )
    return "Unschedulable", (
        f"{len(stuck)} of {len(s.slots)} pods fit on no node; free or add nodes, or lower what the template asks "
        f"for: {words} ({telling.name})"
    )


def _image(pods: list[Pod]) -> Reason | None:
    for pod in pods:
        if pod.reason in IMAGE_TROUBLE:
            return "ImagePullFailed", (
                f"the image of {pod.name} cannot be pulled; check its name, its tag and imagePullSecrets: {pod.message}"
            )
    return None


def _stuck(s: Snapshot, pods: list[Pod]) -> Reason | None:
    """Something else that the template names is missing. Our own environment is missing on purpose."""
    own = names.environment(s.job, s.status.attempt)
    for pod in pods:
        if pod.reason and pod.message and own not in pod.message:
            return (
                pod.reason,
                f"{pod.name} does not start; create what is missing or correct the template: {pod.message}",
            )
    return None
