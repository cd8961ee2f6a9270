"""How pods of a job reach each other: their hosts, ports and Services."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import Intranet, PaddleJob, Role
from paddlejob.plan import names

HOST_BLOCKS = (contract.HOST_PORT_LAST - contract.HOST_PORT_FIRST + 1) // contract.PORTS_PER_POD


def port(job: PaddleJob, role: Role, index: int, attempt: int) -> int:
    """In a pod network every pod has the same port; on the host's, each pod of an attempt has a block of its own."""
    if job.spec.intranet is not Intranet.HOST:
        given = job.metadata.annotations.get(contract.ANNOTATION_PORT, "")
        return int(given) if given.isdigit() else contract.PORT
    block = (names.spread(job, attempt, "ports") + _position(job, role, index)) % HOST_BLOCKS
    return contract.HOST_PORT_FIRST + block * contract.PORTS_PER_POD


def _position(job: PaddleJob, role: Role, index: int) -> int:
    before = 0
    for other, spec in job.spec.roles.items():
        if other is role:
            return before + index
        before += spec.replicas
    raise ValueError(f"job {job.name} has no role {role}")


def host(job: PaddleJob, role: Role, index: int, address: str) -> str:
    """What other pods call this one. Paddle takes no name without a dot for a host."""
    if job.spec.intranet is Intranet.SERVICE:
        return f"{names.pod(job, role, index)}.{job.namespace}.svc"
    return address


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def endpoint(host: str, port: int) -> str:
    return f"{bracketed(host)}:{port}"


def service(job: PaddleJob, role: Role, index: int) -> dict[str, Any]:
    """A headless Service that answers before its pod is ready: pods look for each other while they start."""
    labels = names.labels(job, role, index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(job, names.pod(job, role, index), labels),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [{"name": "paddle", "port": port(job, role, index, attempt=0)}],
        },
    }
