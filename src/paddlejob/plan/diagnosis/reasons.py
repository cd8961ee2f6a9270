"""Why a job is not running yet: the reason, and a message that starts with the fact and what to do about it."""

from __future__ import annotations

import re

from paddlejob.api.types import PaddleJob
from paddlejob.plan import names
from paddlejob.plan.objects.pod_group import ADMITTED_LATER, group_in_use
from paddlejob.plan.ranks import topology_of
from paddlejob.plan.size import is_resizable
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import GATED, UNSCHEDULABLE, Pod, PodPhase

IMAGE_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
)
Reason = tuple[str, str]


def waiting(s: Snapshot) -> Reason | None:
    """Judged from the pods; None while nothing is wrong with them."""
    pods = [pod for pod in s.current.values() if pod.phase in (PodPhase.PENDING, PodPhase.WAITING)]
    return _not_admitted(s) or _unschedulable(s) or _gated(s, pods) or _image(pods) or _stuck(s, pods)


def _not_admitted(s: Snapshot) -> Reason | None:
    group = group_in_use(s.job, s.world.pod_groups)
    if group is None or group.phase not in ADMITTED_LATER or not (s.unscheduled or s.missing):
        return None
    message = group.message or (s.unscheduled[0].message if s.unscheduled else "no message from the scheduler yet")
    return "GangNotAdmitted", (
        f"pod group {group.name} is not admitted, so no pod of the job starts; free resources in its queue or "
        f"lower the requests of the job: {message}"
    )


def _unschedulable(s: Snapshot) -> Reason | None:
    if not s.unscheduled:
        return None
    telling = next((pod for pod in s.unscheduled if "nodes are available" in pod.message), s.unscheduled[0])
    claim = re.search(r'persistentvolumeclaim "([^"]+)" not found', telling.message)
    if claim:
        return "VolumeMissing", (
            f"claim {claim[1]} does not exist in namespace {s.job.namespace}; create it or correct claimName: "
            f"{telling.message}"
        )
    return UNSCHEDULABLE, (
        f"{len(s.unscheduled)} of {len(s.slots)} pods do not fit on any node{in_one_domain(s.job)}; free or add nodes, "
        f"or lower the requests of the template: {telling.message} ({telling.name}){_old_crd(s)}"
    )


def in_one_domain(job: PaddleJob, domain: str = "") -> str:
    """The limit that a required topology sets, for a message; empty without one."""
    topology = topology_of(job)
    if topology is None or not topology.required:
        return ""
    value = f" ({domain})" if domain else ""
    return f" with the same {topology.required}{value}, which schedulingPolicy.topology requires"


def _old_crd(s: Snapshot) -> str:
    """Why an elastic job does not go on with the workers that fit, if the CRD is older than the operator."""
    if s.records_members or not is_resizable(s.job):
        return ""
    return "; it cannot train with fewer workers because the CRD is older than the operator: apply deploy/v1/crd.yaml"


def _gated(s: Snapshot, pods: list[Pod]) -> Reason | None:
    """In a queue, Kueue removes its gates a moment after it admitted the job."""
    gated = [pod for pod in pods if pod.reason == GATED]
    if not gated or s.status.queue:
        return None
    return GATED, (
        f"{len(gated)} of {len(s.slots)} pods wait until their scheduling gates are removed; remove schedulingGates "
        f"from the template, or check the controller that set them ({gated[0].name})"
    )


def _image(pods: list[Pod]) -> Reason | None:
    for pod in pods:
        if pod.reason in IMAGE_REASONS:
            return "ImagePullFailed", (
                f"the image of {pod.name} cannot be pulled; check its name, its tag and imagePullSecrets: {pod.message}"
            )
    return None


def _stuck(s: Snapshot, pods: list[Pod]) -> Reason | None:
    """Something else that the template refers to is missing. The job's own environment is missing on purpose."""
    own = names.environment(s.job, s.status.attempt)
    for pod in pods:
        if pod.reason not in ("", GATED) and pod.message and own not in pod.message:
            return (
                pod.reason,
                f"{pod.name} does not start; create what is missing or correct the template: {pod.message}",
            )
    return None
