"""Why a job is not running yet, judged from its pods."""

from __future__ import annotations

import re

from paddlejob.api.reasons import Reason
from paddlejob.api.types import PaddleJob
from paddlejob.plan import names
from paddlejob.plan.cause import Cause
from paddlejob.plan.manifests.pod_group import ADMITTED_LATER, group_in_use
from paddlejob.plan.ranks import topology_of
from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import GATED, Pod, PodPhase

IMAGE_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
)


CLAIMS_NOT_ALLOCATED = "cannot allocate all claims"


def why_waiting(s: Snapshot) -> Cause | None:
    """Judged from the pods; None while nothing is wrong with them."""
    pods = [pod for pod in s.current.values() if pod.phase in (PodPhase.PENDING, PodPhase.WAITING)]
    scheduling = _not_admitted(s) or _unschedulable(s) or _gated(s, pods) or _without_claims(s, pods)
    return scheduling or _image(pods) or _stuck(s, pods)


def _not_admitted(s: Snapshot) -> Cause | None:
    group = group_in_use(s.job, s.world.pod_groups)
    if group is None or group.phase not in ADMITTED_LATER or not (s.unscheduled or s.missing):
        return None
    message = group.message or (s.unscheduled[0].message if s.unscheduled else "no message from the scheduler yet")
    fact = f"pod group {group.name} is not admitted, so no pod of the job starts"
    remedy = f"free resources in its queue or lower the requests of the job: {message}"
    return Cause(Reason.GANG_NOT_ADMITTED, fact, remedy)


def _unschedulable(s: Snapshot) -> Cause | None:
    if not s.unscheduled:
        return None
    telling = next((pod for pod in s.unscheduled if "nodes are available" in pod.message), s.unscheduled[0])
    claim = re.search(r'persistentvolumeclaim "([^"]+)" not found', telling.message)
    if claim:
        fact = f"claim {claim[1]} does not exist in namespace {s.job.namespace}"
        return Cause(Reason.VOLUME_MISSING, fact, f"create it or correct claimName: {telling.message}")
    fact = f"{len(s.unscheduled)} of {len(s.slots)} pods do not fit on any node{in_one_domain(s.job)}"
    remedy = f"free or add nodes, or lower the requests of the template: {telling.message} ({telling.name})"
    if CLAIMS_NOT_ALLOCATED in telling.message:
        remedy = f"free devices, or lower what its resource claims request: {telling.message} ({telling.name})"
    return Cause(Reason.UNSCHEDULABLE, fact, remedy)


def in_one_domain(job: PaddleJob, domain: str = "") -> str:
    """The limit that a required topology sets, for a message; empty without one."""
    topology = topology_of(job)
    if topology is None or not topology.required:
        return ""
    value = f" ({domain})" if domain else ""
    return f" with the same {topology.required}{value}, which schedulingPolicy.topology requires"


def _gated(s: Snapshot, pods: list[Pod]) -> Cause | None:
    """In a queue, Kueue removes its gates a moment after it admitted the job."""
    gated = [pod for pod in pods if pod.reason == GATED]
    if not gated or s.status.queue:
        return None
    fact = f"{len(gated)} of {len(s.slots)} pods wait until their scheduling gates are removed"
    remedy = f"remove schedulingGates from the template, or check the controller that set them ({gated[0].name})"
    return Cause(Reason.SCHEDULING_GATED, fact, remedy)


def _without_claims(s: Snapshot, pods: list[Pod]) -> Cause | None:
    """The scheduler says nothing about a pod whose resource claims do not exist yet."""
    waiting = [pod for pod in pods if not pod.node and not pod.reason and _claims(s.job, pod)]
    if not waiting:
        return None
    fact = f"{len(waiting)} of {len(s.slots)} pods wait for {_claims(s.job, waiting[0])}"
    remedy = f"if that does not exist in namespace {s.job.namespace}, create it, or correct resourceClaims"
    return Cause(Reason.WAITING_FOR_RESOURCE_CLAIMS, fact, f"{remedy} ({waiting[0].name})")


def _claims(job: PaddleJob, pod: Pod) -> str:
    """What the resource claims of a pod refer to, for a message."""
    claims = job.spec.roles[pod.role].template["spec"].get("resourceClaims") or []
    fields = {"resourceClaimName": "resource claim", "resourceClaimTemplateName": "resource claim template"}
    return ", ".join(f"{what} {one[field]}" for one in claims for field, what in fields.items() if one.get(field))


def _image(pods: list[Pod]) -> Cause | None:
    for pod in pods:
        if pod.reason in IMAGE_REASONS:
            remedy = f"check its name, its tag and imagePullSecrets: {pod.message}"
            return Cause(Reason.IMAGE_PULL_FAILED, f"the image of {pod.name} cannot be pulled", remedy)
    return None


def _stuck(s: Snapshot, pods: list[Pod]) -> Cause | None:
    """Something else that the template refers to is missing. The job's own environment is missing on purpose."""
    own = names.environment(s.job, s.status.attempt)
    for pod in pods:
        if pod.reason not in ("", GATED) and pod.message and own not in pod.message:
            remedy = f"create what is missing or correct the template: {pod.message}"
            return Cause(pod.reason, f"{pod.name} does not start", remedy)
    return None
