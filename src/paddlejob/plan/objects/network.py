"""How pods of a job reach each other: their hosts, ports and Services."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import Intranet, PaddleJob, Role
from paddlejob.plan import names
from paddlejob.plan.objects.metadata import labels, metadata
from paddlejob.plan.restarts.jitter import spread

HOST_BLOCKS = (contract.HOST_PORT_LAST - contract.HOST_PORT_FIRST + 1) // contract.PORTS_PER_POD


def port(job: PaddleJob, role: Role, index: int, attempt: int) -> int:
    """On the pod network all pods have the same port; on the host network each has a block of its own."""
    if job.spec.intranet is not Intranet.HOST:
        given = job.metadata.annotations.get(contract.ANNOTATION_PORT, "")
        return int(given) if given.isdigit() else contract.PORT
    block = (spread(job, attempt, "ports") + job.spec.position((role, index))) % HOST_BLOCKS
    return contract.HOST_PORT_FIRST + block * contract.PORTS_PER_POD


def host(job: PaddleJob, role: Role, index: int, address: str) -> str:
    """The host under which other pods reach this one. Paddle rejects a host name without a dot."""
    if job.spec.intranet is Intranet.SERVICE:
        return f"{names.pod(job, role, index)}.{job.namespace}.svc"
    return address


def endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def service(job: PaddleJob, role: Role, index: int) -> dict[str, Any]:
    """A headless Service that resolves before its pod is ready: pods look each other up while they start."""
    chosen = labels(job, role, index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, names.pod(job, role, index), chosen),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": chosen,
            "ports": [{"name": "paddle", "port": port(job, role, index, attempt=0)}],
        },
    }
