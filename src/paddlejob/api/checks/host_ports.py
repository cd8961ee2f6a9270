"""How many nodes a job needs because its pods use host ports. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def node_problems(documents: Iterable[Any], nodes: int) -> list[str]:
    """List the jobs whose pods cannot all be scheduled: a host port can be used once per node."""
    return [found for document in documents if isinstance(document, Mapping) for found in _problems(document, nodes)]


def _problems(job: Mapping[str, Any], nodes: int) -> list[str]:
    users: Counter[tuple[int, str]] = Counter()
    for pods, template in _templates(job):
        for port in _host_ports(template):
            users[port] += pods
    if not users:
        return []
    (number, protocol), pods = min(users.items(), key=lambda item: (-item[1], item[0]))
    if pods <= nodes:
        return []
    name = (job.get("metadata") or {}).get("name", "(unnamed)")
    return [
        f"job {name}: {pods} pods use host port {number}/{protocol}, which needs a node for each, and workerCount is "
        f"{nodes}; set workerCount to at least {pods}"
    ]


def _templates(job: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the pod templates of a Job or PaddleJob, each with the number of pods that run at once."""
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
    """Return a number of pods. Other values are reported by the job's own validation."""
    return value if isinstance(value, int) else default
