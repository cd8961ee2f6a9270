"""The one place where the names and labels of a job's objects are made."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role


def pod(job: PaddleJob, role: Role, index: int) -> str:
    return f"{job.name}-{role}-{index}"


def environment(job: PaddleJob, attempt: int) -> str:
    return environment_of(job.name, job.metadata.uid, attempt)


def environment_of(job: str, uid: str, attempt: int) -> str:
    """Pods find it by name alone, so it differs from that of an earlier job of the same name."""
    return f"{job}-env-{uid[:5]}-{attempt}"


def pod_group(job: PaddleJob) -> str:
    """Of the group that we make; a user's own bears the name of the job."""
    return f"{job.name}-{job.metadata.uid[:5]}"


def labels(job: PaddleJob, role: Role | None = None, index: int | None = None) -> dict[str, str]:
    made = {contract.LABEL_JOB: job.name}
    if role is not None:
        made[contract.LABEL_ROLE] = role.value
    if index is not None:
        made[contract.LABEL_INDEX] = str(index)
    return made


def selector(job: PaddleJob) -> str:
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


def build_digest(job: PaddleJob) -> str:
    """Changes when the part of the spec changes that running pods were built from.

    It is taken from what the user wrote, never from what we make of it: a newer operator that makes better pods
    must not restart the jobs of an older one.
    """
    roles = {role: [spec.replicas, spec.template] for role, spec in job.spec.roles.items()}
    return hashlib.sha256(json.dumps(roles, sort_keys=True).encode()).hexdigest()[:12]


def build_mark(job: PaddleJob) -> str:
    """What pods are marked with: the digest, and the generation of the job that it was taken from."""
    return f"{build_digest(job)}/{job.metadata.generation}"


def is_built_from(job: PaddleJob, mark: str) -> bool:
    """The generation alone tells of a user's change: a newer CRD, with other defaults, changes the digest too."""
    digest, _, generation = mark.partition("/")
    return digest == build_digest(job) or generation == str(job.metadata.generation)


def spread(job: PaddleJob, attempt: int, salt: str = "") -> int:
    """A number that differs between jobs and attempts, but is always the same for one: jitter without randomness."""
    digest = hashlib.sha256(f"{job.metadata.uid}/{attempt}/{salt}".encode()).digest()
    return int.from_bytes(digest[:6])
