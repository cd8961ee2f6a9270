"""Jobs, pods and worlds in a few lines, for tests that read as stories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paddlejob.api.types import PaddleJob, Role, Status
from paddlejob.plan import Create, Delete, Kind, Plan, Pod, PodPhase, RecordEvent, World
from paddlejob.plan.manifests.build_mark import build_digest

NOON = 1_800_000_000.0
IMAGE = "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1"
ROLES = {"ps": Role.PS, "worker": Role.WORKER, "heter": Role.HETER}


def template(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "paddle", "image": IMAGE, **container}]}}


def document(
    name: str = "mnist",
    *,
    ps: int = 0,
    workers: int = 2,
    heter: int = 0,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A job as written in a file."""
    roles = {
        role: {"replicas": count, "template": template()}
        for role, count in (("ps", ps), ("worker", workers), ("heter", heter))
        if count
    }
    for role in list(roles):
        roles[role] |= spec.pop(f"{role}_", {})
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": "default"} | ({"labels": labels} if labels else {}),
        "spec": {**roles, **spec},
    }


def job(name: str = "mnist", *, status: dict[str, Any] | None = None, **options: Any) -> PaddleJob:
    """A job as the API server would hand it out."""
    made = document(name, **options)
    made["metadata"] |= {"uid": f"uid-of-{name}", "generation": 1, "creationTimestamp": "2027-01-15T08:00:00Z"}
    made["status"] = status or {}
    return PaddleJob.model_validate(made)


def having(job: PaddleJob, status: Status) -> PaddleJob:
    return job.model_copy(update={"status": status})


def pod(job: PaddleJob, role: str, index: int, phase: PodPhase = PodPhase.RUNNING, **more: Any) -> Pod:
    """A pod of the job's current attempt, unless stated otherwise."""
    name = f"{job.name}-{role}-{index}"
    made = Pod(
        name=name,
        uid=f"uid-of-{name}",
        role=ROLES[role],
        index=index,
        attempt=max(1, job.status.attempt),
        phase=phase,
        address=f"10.0.{list(ROLES).index(role)}.{index + 1}",
        node="node-1",
        created=NOON - 10,
        build=build_digest(job),
    )
    return replace(made, **more)


def all_pods(job: PaddleJob, phase: PodPhase = PodPhase.RUNNING, **more: Any) -> tuple[Pod, ...]:
    return tuple(
        pod(job, role.value, index, phase, **more)
        for role, spec in job.spec.roles.items()
        for index in range(spec.replicas)
    )


def world(*pods: Pod, **more: Any) -> World:
    return World(pods=pods, **more)


def running(job: PaddleJob) -> PaddleJob:
    """The job while its first attempt trains."""
    return having(
        job,
        Status.model_validate(
            {
                "phase": "Running",
                "mode": job.mode,
                "reason": "Running",
                "attempt": 1,
                "publishedAttempt": 1,
                "startTime": "2027-01-15T08:00:00Z",
            }
        ),
    )


def deleted(decided: Plan, kind: Kind = Kind.POD) -> list[str]:
    return [one.name for one in decided.actions if isinstance(one, Delete) and one.kind is kind]


def created(decided: Plan, kind: Kind = Kind.POD) -> list[str]:
    return [one.name for one in decided.actions if isinstance(one, Create) and one.kind is kind]


def recorded(decided: Plan) -> list[RecordEvent]:
    return [one for one in decided.actions if isinstance(one, RecordEvent)]
