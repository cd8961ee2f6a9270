"""The objects that a job would get, by the planner itself, with example addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlejob import contract
from paddlejob.api.types import PaddleJob
from paddlejob.errors import BadInput
from paddlejob.plan import Create, Kind, Pod, PodGroup, PodPhase, World, names
from paddlejob.plan import plan as make_plan
from paddlejob.plan.manifests.build_mark import build_digest
from paddlejob.plan.manifests.environment import too_large
from paddlejob.plan.manifests.pod_group import is_gang, pod_group_manifest
from paddlejob.plan.manifests.workload import workload_manifest
from paddlejob.plan.quota import queue_of

EXAMPLE_ADDRESSES: dict[str, Callable[[int], str]] = {
    "kubernetes": lambda number: f"10.0.{number // 250}.{number % 250 + 1}",
    "local": lambda number: f"127.{number // 62500 + 1}.{number // 250 % 250}.{number % 250 + 2}",
}
"""The address of the pod with a given number, on each engine."""
EXAMPLE_TIME = 1_800_000_000.0


def planned_objects(job: PaddleJob, engine: str) -> list[dict[str, Any]]:
    """The pods and Services of the first plan, then the environment of the plan that lifts the start barrier."""
    metadata = job.metadata.model_copy(update={"uid": job.metadata.uid or "00000-example"})
    job = job.model_copy(update={"metadata": metadata})
    if message := too_large(job):
        raise BadInput(f"job {job.name}: {message}")
    groups = (PodGroup(names.pod_group(job), "example", owned=True),) if is_gang(job) else ()
    first = make_plan(job, World(pod_groups=groups), EXAMPLE_TIME)
    services = {one.name: "" for one in first.actions if isinstance(one, Create) and one.kind is Kind.SERVICE}
    waiting = World(pods=_waiting_pods(job, EXAMPLE_ADDRESSES[engine]), services=services, pod_groups=groups)
    second = make_plan(job.model_copy(update={"status": first.status}), waiting, EXAMPLE_TIME)
    created = [action.manifest for action in (*first.actions, *second.actions) if isinstance(action, Create)]
    queued = [workload_manifest(job, contract.KUEUE_VERSIONS[0], None)] if queue_of(job) and engine != "local" else []
    return [*queued, *([pod_group_manifest(job)] if groups else []), *created]


def _waiting_pods(job: PaddleJob, address: Callable[[int], str]) -> tuple[Pod, ...]:
    """The pods of the first attempt, waiting at the start barrier."""
    return tuple(
        Pod(
            name=names.pod(job, role, index),
            uid=f"example-{number}",
            role=role,
            index=index,
            attempt=1,
            phase=PodPhase.WAITING,
            address=address(number),
            build=build_digest(job),
        )
        for number, (role, index) in enumerate(job.spec.slots)
    )
