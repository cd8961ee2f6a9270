"""The transform for Workloads of Kueue."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.kube.resource import Object
from paddlejob.objects.transform import Owned, owned
from paddlejob.plan.workload import Assignment, Condition, PodUpdate, Workload

READY = "Ready"


def workload(obj: Object) -> Owned[Workload]:
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    pod_sets = {one["name"]: one for one in spec.get("podSets") or []}
    conditions = [_condition(one) for one in status.get("conditions") or []]
    return owned(
        obj,
        Workload(
            name=metadata["name"],
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
            queue=spec.get("queueName", ""),
            build=(metadata.get("annotations") or {}).get(contract.ANNOTATION_BUILD, ""),
            counts={name: one.get("count", 0) for name, one in pod_sets.items()},
            fewest=next((one["minCount"] for one in pod_sets.values() if one.get("minCount") is not None), None),
            priority_class=(spec.get("priorityClassRef") or {}).get("name") or spec.get("priorityClassName", ""),
            active=spec.get("active", True),
            deleting=bool(metadata.get("deletionTimestamp")),
            conditions={one.type: one for one in conditions},
            checks=tuple(_check(one) for one in status.get("admissionChecks") or [] if one.get("state") != READY),
            assignments=_assignments(status, pod_sets),
            reclaimable={one["name"]: one["count"] for one in status.get("reclaimablePods") or []},
        ),
    )


def flavor(obj: Object) -> PodUpdate:
    """What a ResourceFlavor adds to pods."""
    spec = obj.get("spec") or {}
    return PodUpdate(node_selector=spec.get("nodeLabels") or {}, tolerations=tuple(spec.get("tolerations") or []))


def _condition(found: Object) -> Condition:
    return Condition(found["type"], found["status"] == "True", found.get("reason", ""), found.get("message", ""))


def _check(found: Object) -> str:
    message = f": {found['message']}" if found.get("message") else ""
    return f"{found['name']} is {found['state']}{message}"


def _assignments(status: Object, pod_sets: dict[str, Any]) -> dict[str, Assignment]:
    admission = status.get("admission") or {}
    updates = [one for check in status.get("admissionChecks") or [] for one in check.get("podSetUpdates") or []]
    return {
        one["name"]: Assignment(
            # Older versions of Kueue leave it out if all pods were admitted.
            count=one.get("count", pod_sets.get(one["name"], {}).get("count", 0)),
            flavors=tuple(dict.fromkeys((one.get("flavors") or {}).values())),
            updates=tuple(_update(update) for update in updates if update["name"] == one["name"]),
            has_topology=bool(one.get("topologyAssignment")),
        )
        for one in admission.get("podSetAssignments") or []
    }


def _update(found: Object) -> PodUpdate:
    return PodUpdate(
        node_selector=found.get("nodeSelector") or {},
        tolerations=tuple(found.get("tolerations") or []),
        labels=found.get("labels") or {},
        annotations=found.get("annotations") or {},
    )
