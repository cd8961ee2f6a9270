"""What the conversions share: reading unvalidated input, and assembling a PaddleJob."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.errors import BadInput

Obj = dict[str, Any]
SAME_FIELDS = ("activeDeadlineSeconds", "backoffLimit", "suspend", "ttlSecondsAfterFinished")
"""Fields with the same meaning in a Job, in Kubeflow's runPolicy and in a PaddleJob."""
KEPT_METADATA = ("name", "namespace", "labels", "annotations")
NOTED_METADATA = ("ownerReferences", "finalizers")
"""The rest of the metadata is set by the API server, and leaving it out needs no note."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ORDER = (
    "cleanPodPolicy", "intranet", "elastic", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished",
    "suspend", "schedulingPolicy", "ps", "worker",
)  # fmt: skip


@dataclass(frozen=True)
class Converted:
    job: Obj
    notes: tuple[str, ...]


def part(document: Obj, path: str) -> Obj:
    """The mapping at a path of field names; empty if a field on the path is absent or null."""
    found: Any = document
    walked = ""
    for name in path.split("."):
        walked = f"{walked}.{name}" if walked else name
        found = found.get(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise BadInput(f"{walked}: {str(found)[:60]!r} is not a mapping")
    return dict(found)


def needed(document: Obj, path: str) -> Obj:
    found = part(document, path)
    if not found:
        raise BadInput(f"{path} is missing; add it")
    return found


def whole_number(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadInput(f"{path}: {str(value)[:60]!r} is not a whole number of 0 or more")
    return value


def given(spec: Obj, names: tuple[str, ...] = SAME_FIELDS) -> Obj:
    """Those of these fields that are set. In Kubernetes null means absent."""
    return {name: copy.deepcopy(spec[name]) for name in names if spec.get(name) is not None}


def template_at(document: Obj, path: str) -> Obj:
    """A copy of a pod template whose containers have names."""
    found = copy.deepcopy(needed(document, path))
    part(found, "metadata.labels")
    containers = needed(found, "spec").get("containers")
    if not isinstance(containers, list) or not all(isinstance(one, dict) and one.get("name") for one in containers):
        raise BadInput(f"{path}.spec.containers is not a list of containers with names")
    for one in containers:
        env = one.get("env") or []
        if not isinstance(env, list) or not all(isinstance(pair, dict) and pair.get("name") for pair in env):
            raise BadInput(f"{path}.spec.containers: env of {one['name']} is not a list of variables with names")
    return found


def drop_empty_metadata(template: Obj) -> None:
    metadata = template.get("metadata") or {}
    for key in ("labels", "annotations", "creationTimestamp"):
        if key in metadata and not metadata[key]:
            del metadata[key]
    if not metadata:
        template.pop("metadata", None)


def paddle_job(document: Obj, spec: Obj, notes: list[str]) -> Converted:
    """The PaddleJob with this spec and the metadata of the original job."""
    metadata = part(document, "metadata")
    kept = {key: copy.deepcopy(metadata[key]) for key in KEPT_METADATA if metadata.get(key)}
    if isinstance(kept.get("annotations"), dict):
        kept["annotations"].pop(LAST_APPLIED, None)
    kept = {key: value for key, value in kept.items() if value}
    if "name" not in kept and metadata.get("generateName"):
        kept = {"name": str(metadata["generateName"]).rstrip("-."), **kept}
        notes.append(f"metadata.generateName is now metadata.name: {kept['name']}; change it for every further job")
    notes += [f"metadata.{key} is left out" for key in NOTED_METADATA if metadata.get(key)]
    ordered = {key: spec[key] for key in ORDER if key in spec}
    job = {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "metadata": kept, "spec": ordered}
    return Converted(job, tuple(notes))
