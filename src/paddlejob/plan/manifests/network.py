"""How pods of a job reach each other: their hosts, ports and Services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlejob import contract
from paddlejob.api.types import Intranet, PaddleJob, Role
from paddlejob.plan import names
from paddlejob.plan.manifests.metadata import labels, metadata
from paddlejob.plan.restarts.jitter import spread
from paddlejob.plan.world import Pod

HOST_BLOCKS = (contract.HOST_PORT_LAST - contract.HOST_PORT_FIRST + 1) // contract.PORTS_PER_POD


def port(job: PaddleJob, role: Role, index: int, attempt: int) -> int:
    """On the pod network all pods have the same port; on the host network each has a block of its own."""
    if job.spec.intranet is not Intranet.HOST:
        given = job.metadata.annotations.get(contract.ANNOTATION_PORT, "")
        return int(given) if given.isdigit() else contract.PORT
    block = (spread(job, attempt, "ports") + job.spec.position((role, index))) % HOST_BLOCKS
    return contract.HOST_PORT_FIRST + block * contract.PORTS_PER_POD


def dns_name(pod: Mapping[str, Any]) -> str:
    """The name that a Service gives a pod with this spec, in the domain of its namespace; empty if none does."""
    return f"{pod['hostname']}.{pod['subdomain']}" if pod.get("hostname") and pod.get("subdomain") else ""


def host(job: PaddleJob, role: Role, index: int, attempt: int, address: str) -> str:
    """The host under which other pods reach this one. Paddle rejects a host name without a dot."""
    if job.spec.intranet is Intranet.SERVICE:
        return f"{names.hostname(job, role, index, attempt)}.{names.service(job)}.{job.namespace}.svc"
    return address


def host_of(job: PaddleJob, pod: Pod) -> str:
    """The host of a pod that exists; empty if it has no address yet. Older operators gave other names."""
    if pod.address and pod.dns_name and job.spec.intranet is Intranet.SERVICE:
        return f"{pod.dns_name}.{job.namespace}.svc"
    return host(job, pod.role, pod.index, pod.built or pod.attempt, pod.address) if pod.address else ""


def endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def service(job: PaddleJob) -> dict[str, Any]:
    """The headless Service of all pods of a job. It resolves before they are ready: they look each other up early."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, names.service(job), labels(job)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels(job),
            "ports": [{"name": "paddle", "port": port(job, Role.WORKER, 0, attempt=0)}],
        },
    }
