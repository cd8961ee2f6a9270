"""The Workload of a job, by which Kueue admits it: one pod set for each role."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan import names
from paddlejob.plan.manifests.build_mark import build_mark
from paddlejob.plan.manifests.metadata import labels, metadata
from paddlejob.plan.manifests.pod import topology_request
from paddlejob.plan.quota import fewest_to_admit, queue_of
from paddlejob.plan.ranks import topology_of
from paddlejob.plan.workload import Priority

Manifest = dict[str, Any]


def workload_manifest(job: PaddleJob, version: str, priority: Priority | None) -> Manifest:
    """It has no finalizer, so it is deleted with the job even if no operator runs."""
    name = names.workload(job)
    about = metadata(job, name, {**labels(job), contract.LABEL_QUEUE_JOB: job.metadata.uid})
    spec = {"queueName": queue_of(job), "podSets": [_pod_set(job, role) for role in job.spec.roles]}
    return {
        "apiVersion": f"{contract.KUEUE_GROUP}/{version}",
        "kind": "Workload",
        "metadata": about | {"annotations": {contract.ANNOTATION_BUILD: build_mark(job)}},
        "spec": spec | _priority(version, priority),
    }


def _pod_set(job: PaddleJob, role: Role) -> Manifest:
    spec, fewest = job.spec.roles[role], fewest_to_admit(job)
    given = spec.template.get("metadata") or {}
    about = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
    made = {"name": role.value, "count": spec.replicas, "template": {"metadata": about, "spec": spec.template["spec"]}}
    topology = _topology(given.get("annotations") or {}) or _topology(topology_request(topology_of(job)))
    return (
        made
        | ({"topologyRequest": topology} if topology else {})
        | ({"minCount": fewest} if role is Role.WORKER and fewest is not None else {})
    )


def _topology(annotations: Manifest) -> Manifest:
    """The domain that the template or the job asks for; neighbours in rank become neighbours in it."""
    known = contract.TOPOLOGY_REQUESTS.items()
    found = {kind: annotations[annotation] for kind, annotation in known if annotation in annotations}
    return found | {"podIndexLabel": contract.LABEL_INDEX} if found else {}


def _priority(version: str, priority: Priority | None) -> Manifest:
    if priority is None:
        return {}
    if version == "v1beta1":
        source = "scheduling.k8s.io/priorityclass" if priority.of_pods else "kueue.x-k8s.io/workloadpriorityclass"
        return {"priorityClassName": priority.name, "priorityClassSource": source, "priority": priority.value}
    group, kind = ("scheduling.k8s.io", "PriorityClass")
    if not priority.of_pods:
        group, kind = contract.KUEUE_GROUP, "WorkloadPriorityClass"
    return {
        "priorityClassRef": {"group": group, "kind": kind, "name": priority.name},
        "priority": priority.value,
    }
