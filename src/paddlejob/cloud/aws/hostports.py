"""How many nodes a job needs because its pods claim ports of the node. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def node_faults(documents: Iterable[Any], nodes: int) -> list[str]:
    """Jobs whose pods cannot all be placed: a node has each host port once."""
    return [fault for document in documents if isinstance(document, Mapping) for fault in _faults(document, nodes)]


def _faults(job: Mapping[str, Any], nodes: int) -> list[str]:
    claims: Counter[tuple[int, str]] = Counter()
    for pods, template in _templates(job):
        for claim in _host_ports(template):
            claims[claim] += pods
    if not claims:
        return []
    (port, protocol), pods = min(claims.items(), key=lambda claim: (-claim[1], claim[0]))
    if pods <= nodes:
        return []
    name = (job.get("metadata") or {}).get("name", "without a name")
    return [
        f"job {name}: {pods} pods use host port {port}/{protocol}, which a node has once, and workerCount is {nodes}; "
        f"set workerCount to at least {pods}"
    ]


def _templates(job: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """The pods that run at once, by template: a Job's, or each role's of a PaddleJob."""
    spec = job.get("spec") or {}
    if job.get("kind") == "Job":
        parallel = _count(spec.get("parallelism"))
        most = _count(spec.get("completions"), parallel)
        return [(min(parallel, most), spec.get("template") or {})]
    if job.get("kind") == "PaddleJob":
        roles = [spec.get(role) or {} for role in ("ps", "worker", "heter")]
        return [(_count(role.get("replicas")), role["template"]) for role in roles if role.get("template")]
    return []


def _host_ports(template: Mapping[str, Any]) -> set[tuple[int, str]]:
    pod = template.get("spec") or {}
    ports = [port for container in pod.get("containers") or [] for port in container.get("ports") or []]
    on_host = "containerPort" if pod.get("hostNetwork") else "hostPort"
    return {(port[on_host], port.get("protocol", "TCP")) for port in ports if port.get(on_host)}


def _count(value: object, default: int = 1) -> int:
    """A number of pods. What is no number is for the job's own validation to refuse."""
    return value if isinstance(value, int) else default
