"""How pods of a job reach each other: their hosts, ports and Services."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import Intranet, PaddleJob, Role
from paddlejob.plan import names
from paddlejob.plan.objects.metadata import labels, metadata
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


def host(job: PaddleJob, role: Role, index: int, address: str) -> str:
    """The host under which other pods reach this one. Paddle rejects a host name without a dot."""
    if job.spec.intranet is Intranet.SERVICE:
        return f"{names.pod(job, role, index)}.{names.service(job)}.{job.namespace}.svc"
    return address


def host_of(job: PaddleJob, pod: Pod) -> str:
    """The host of a pod that exists. Empty if it has no address yet; a pod of 0.1 has a Service of its own."""
    if job.spec.intranet is Intranet.SERVICE and pod.address and not pod.service:
        return f"{pod.name}.{job.namespace}.svc"
    return host(job, pod.role, pod.index, pod.address) if pod.address else ""


def endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def service(job: PaddleJob) -> dict[str, Any]:
    """The headless Service of all pods of a job."""
    return _headless(job, names.service(job), labels(job))


def service_of_pod(job: PaddleJob, pod: Pod) -> dict[str, Any]:
    """The headless Service of one pod that 0.1 created."""
    return _headless(job, pod.name, labels(job, pod.role, pod.index))


def _headless(job: PaddleJob, name: str, chosen: dict[str, str]) -> dict[str, Any]:
    """It resolves before pods are ready: they look each other up while they start."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, name, chosen),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": chosen,
            "ports": [{"name": "paddle", "port": port(job, Role.WORKER, 0, attempt=0)}],
        },
    }
