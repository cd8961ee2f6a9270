"""What the volumes of a pod hold when its containers have ended: nothing that matters, data, or data on their way.

Only the template is known. What is behind a claim is not: it may be a FUSE file system that writes its cache back when
it is unmounted, which a kubelet does after the containers have ended.
"""

from __future__ import annotations

from typing import Any

from paddlejob.api.template import training_container
from paddlejob.api.types import PaddleJob, Role

GONE_WITH_THE_POD = {"configMap", "downwardAPI", "emptyDir", "ephemeral", "gitRepo", "image", "projected", "secret"}
DISKS = {"awsElasticBlockStore", "azureDisk", "cinder", "fc", "gcePersistentDisk", "iscsi", "rbd", "vsphereVolume"}
WRITTEN_AT_ONCE = DISKS | {"hostPath", "nfs"}
"""NFS writes when a file is closed. A disk is read through the same cache, or from another node once it is detached."""


def keeps_data(job: PaddleJob, role: Role) -> bool:
    """Whether a pod of the role can write to a volume that outlives it, as checkpoints are."""
    return bool(_writable(job, role) - GONE_WITH_THE_POD)


def flushes_on_unmount(job: PaddleJob, role: Role) -> bool:
    """Whether such a volume may be complete only when it is unmounted."""
    return bool(_writable(job, role) - GONE_WITH_THE_POD - WRITTEN_AT_ONCE)


def may_be_filled(job: PaddleJob, role: Role) -> bool:
    """Whether something else can write what a pod of the role reads: another container, or who shares a volume."""
    spec = job.spec.roles[role].template["spec"]
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    return len(spec["containers"]) > 1 or bool(sidecars) or _outlives(spec, spec["containers"])


def reads_before_start(job: PaddleJob, role: Role) -> bool:
    """Whether a container that does not wait at the start barrier mounts a volume that outlives the pod."""
    spec = job.spec.roles[role].template["spec"]
    trains = training_container(spec["containers"])
    return _outlives(spec, [one for one in [*spec["containers"], *(spec.get("initContainers") or [])] if one != trains])


def _outlives(spec: dict[str, Any], containers: list[dict[str, Any]]) -> bool:
    """Whether these containers mount a volume that outlives the pod."""
    mounted = {mount["name"] for one in containers for mount in one.get("volumeMounts") or []}
    found = [volume.items() for volume in spec.get("volumes") or [] if volume["name"] in mounted]
    kinds = {kind for items in found for kind, source in items if source is not None and kind != "name"}
    return bool(kinds - GONE_WITH_THE_POD)


def _writable(job: PaddleJob, role: Role) -> set[str]:
    """The types of the volumes that a container can write to."""
    if role not in job.spec.roles:
        return set()
    spec = job.spec.roles[role].template["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or [])]
    mounts = [mount for one in containers for mount in one.get("volumeMounts") or []]
    written = {mount["name"] for mount in mounts if not mount.get("readOnly")}
    return {kind for volume in spec.get("volumes") or [] if volume["name"] in written for kind in _kinds(volume)}


def _kinds(volume: dict[str, Any]) -> list[str]:
    """One, unless the volume is read-only or its type is not known."""
    found = {kind: source for kind, source in volume.items() if kind != "name" and source is not None}
    return [kind for kind, source in found.items() if not (isinstance(source, dict) and source.get("readOnly"))]
