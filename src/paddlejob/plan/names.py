"""The names of a job's objects."""

from __future__ import annotations

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role


def in_command(namespace: str, name: str) -> str:
    """A job as the arguments of a `pdj` command in a message."""
    return f"{name}{namespace_flag(namespace)}"


def namespace_flag(namespace: str) -> str:
    """With a leading space; empty for the default namespace."""
    return "" if namespace == contract.DEFAULT_NAMESPACE else f" -n {namespace}"


def pod(job: PaddleJob, role: Role, index: int) -> str:
    return f"{job.name}-{role}-{index}"


def hostname(job: PaddleJob, role: Role, index: int, attempt: int) -> str:
    """No other attempt or job has it: caches of DNS keep addresses of the dead, and Paddle looks its master up once."""
    return f"{role}-{index}-{job.metadata.uid[:5]}-{attempt}"


def service(job: PaddleJob) -> str:
    """Of the Service that makes the host names of all pods resolvable."""
    return f"{job.name}-peers"


def environment(job: PaddleJob, attempt: int) -> str:
    return environment_of(job.name, job.metadata.uid, attempt)


def environment_of(job: str, uid: str, attempt: int) -> str:
    """Pods refer to it by name alone, so the name differs from that of an earlier job with the same name."""
    return f"{environment_prefix(job)}{uid[:5]}-{attempt}"


def environment_prefix(job: str) -> str:
    """What the names of all environments of a job start with."""
    return f"{job}-env-"


def agent(job: PaddleJob, digest: str) -> str:
    """Of the ConfigMap with the agent of the job's pods; another content has another name."""
    return f"{job.name}-agent-{job.metadata.uid[:5]}-{digest}"


def workload(job: PaddleJob) -> str:
    """Of the job's Workload. Kueue also uses it as the value of a label, which has at most 63 characters."""
    return f"paddlejob-{job.name[:47]}-{job.metadata.uid[:5]}"


def pod_group(job: PaddleJob) -> str:
    """Of the group that the operator creates; a group of the user's has the name of the job."""
    return f"{job.name}-{job.metadata.uid[:5]}"
