"""The API resources that belong to a PaddleJob, and what their metadata says about the job that owns them."""

from __future__ import annotations

from paddlejob import contract
from paddlejob.kube.resource import Object, Resource

PADDLEJOBS = Resource(contract.GROUP, contract.VERSION, contract.PLURAL, kind=contract.KIND)
_VOLCANO_GROUP, _VOLCANO_VERSION = contract.VOLCANO_API.split("/")
POD_GROUPS = Resource(_VOLCANO_GROUP, _VOLCANO_VERSION, "podgroups", kind="PodGroup")
WORKLOADS = Resource(contract.KUEUE_GROUP, contract.KUEUE_VERSIONS[0], "workloads", kind="Workload")


def is_paddlejob(reference: Object) -> bool:
    """Whether an owner reference names our kind; Kubeflow has a PaddleJob in another API group."""
    group: str = reference["apiVersion"].partition("/")[0]
    return group == contract.GROUP and reference["kind"] == contract.KIND


def owner_of(obj: Object) -> str:
    """The uid of the PaddleJob that controls the object; empty if none does."""
    uid: str = _owner(obj).get("uid", "")
    return uid


def owning_job(obj: Object) -> str:
    """The name of the PaddleJob that controls the object, else the one in its label, which anyone may change."""
    name: str = _owner(obj).get("name", "")
    return name or job_of(obj)


def _owner(obj: Object) -> Object:
    references = obj["metadata"].get("ownerReferences") or []
    return next((one for one in references if one.get("controller") and is_paddlejob(one)), {})


def job_of(obj: Object) -> str:
    """The name of the PaddleJob in the object's label; empty if it has no such label."""
    return str(labels_of(obj).get(contract.LABEL_JOB, ""))


def attempt_of(obj: Object) -> int:
    """The attempt in the object's label; 0 if it has no such label."""
    text = labels_of(obj).get(contract.LABEL_ATTEMPT, "")
    return int(text) if text.isdigit() else 0


def labels_of(obj: Object) -> dict[str, str]:
    labels: dict[str, str] | None = obj["metadata"].get("labels")
    return labels or {}
