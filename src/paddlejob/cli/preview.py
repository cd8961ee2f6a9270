"""A job's objects as the planner would create them, with example addresses for pods that do not run yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlejob.api.types import PaddleJob, Slot
from paddlejob.errors import BadInput
from paddlejob.plan import Create, Pod, PodGroup, PodPhase, World, names, plan
from paddlejob.plan.objects import environment
from paddlejob.plan.objects.build_mark import build_digest
from paddlejob.plan.objects.pod_group import is_gang, pod_group_manifest

ENGINES: dict[str, Callable[[int], str]] = {
    "kubernetes": lambda number: f"10.0.{number // 250}.{number % 250 + 1}",
    "local": lambda number: f"127.{number // 62500 + 1}.{number // 250 % 250}.{number % 250 + 2}",
}
"""Which addresses pods have in each place."""

THEN = 1_800_000_000.0


def preview(job: PaddleJob, engine: str) -> list[dict[str, Any]]:
    """Pods and Services of the first plan, then the environment of the plan that opens the gate."""
    known = job.model_copy(
        update={"metadata": job.metadata.model_copy(update={"uid": job.metadata.uid or "00000-example"})}
    )
    if message := environment.too_large(known):
        raise BadInput(f"job {job.name}: {message}")
    groups = (PodGroup(names.pod_group(known), "example", ours=True),) if is_gang(known) else ()
    first = plan(known, World(pod_groups=groups), THEN)
    at_the_gate = World(
        pods=tuple(_waiting(known, number, slot, ENGINES[engine]) for number, slot in enumerate(known.spec.slots)),
        pod_groups=groups,
    )
    second = plan(known.model_copy(update={"status": first.status}), at_the_gate, THEN)
    created = [action.manifest for action in (*first.actions, *second.actions) if isinstance(action, Create)]
    return ([pod_group_manifest(known)] if groups else []) + created


def _waiting(job: PaddleJob, number: int, slot: Slot, address: Callable[[int], str]) -> Pod:
    role, index = slot
    return Pod(
        name=names.pod(job, role, index),
        uid=f"example-{number}",
        role=role,
        index=index,
        attempt=1,
        phase=PodPhase.WAITING,
        address=address(number),
        build=build_digest(job),
    )
