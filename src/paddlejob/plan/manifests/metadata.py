"""Labels and owner references, which every object of a job has."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role


def labels(job: PaddleJob, role: Role | None = None, index: int | None = None) -> dict[str, str]:
    found = {contract.LABEL_JOB: job.name}
    if role is not None:
        found[contract.LABEL_ROLE] = role.value
    if index is not None:
        found[contract.LABEL_INDEX] = str(index)
    return found


def worker_selector(job: PaddleJob) -> str:
    return ",".join(f"{key}={value}" for key, value in labels(job, Role.WORKER).items())


def metadata(job: PaddleJob, name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": labels,
        "ownerReferences": [
            {
                "apiVersion": contract.API_VERSION,
                "kind": contract.KIND,
                "name": job.name,
                "uid": job.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
