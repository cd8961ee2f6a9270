"""Where the pods of a job should run: within one domain, apart from each other, not on nodes that fail."""

from __future__ import annotations

from typing import Any

from paddlejob.api.types import PaddleJob, Role, Topology
from paddlejob.plan.manifests.metadata import labels

Manifest = dict[str, Any]
HOST_NAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def avoid_nodes(spec: Manifest, nodes: tuple[str, ...]) -> None:
    """Preferred, not required: a job that fits nowhere else still runs."""
    _avoid(spec, HOST_NAME, nodes)


def keep_together(spec: Manifest, job: PaddleJob, topology: Topology) -> None:
    """Attract each pod to the others of the job, whatever their attempt.

    The scheduler lets a pod start a domain if no pod matches the term but the pod itself. Pods of earlier attempts
    are gone before new ones are created; those by which an elastic job grows join the ones that train.
    """
    label = topology.required or topology.preferred
    term = {"topologyKey": label, "labelSelector": {"matchLabels": labels(job)}}
    if topology.required:
        _add(spec, "podAffinity", REQUIRED, term)
        _avoid(spec, topology.required, job.status.avoidedDomains)
    else:
        _add(spec, "podAffinity", PREFERRED, {"weight": 100, "podAffinityTerm": term})


def separate_workers(spec: Manifest, job: PaddleJob) -> None:
    """Paddle's launcher counts nodes by distinct hosts: it would take two workers at one address for one."""
    term = {"topologyKey": HOST_NAME, "labelSelector": {"matchLabels": labels(job, Role.WORKER)}}
    _add(spec, "podAntiAffinity", REQUIRED, term)


def _avoid(spec: Manifest, label: str, values: tuple[str, ...]) -> None:
    if values:
        others = {"key": label, "operator": "NotIn", "values": list(values)}
        _add(spec, "nodeAffinity", PREFERRED, {"weight": 100, "preference": {"matchExpressions": [others]}})


def _add(spec: Manifest, kind: str, strength: str, term: Manifest) -> None:
    """Add a term to those of the template."""
    affinity = spec["affinity"] = {**(spec.get("affinity") or {})}
    given = affinity[kind] = {**(affinity.get(kind) or {})}
    given[strength] = [*(given.get(strength) or []), term]
