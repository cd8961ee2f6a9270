"""`pdj plan` and `pdj crd`: the verbs that print objects without creating them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob.cli.options import check_namespace

if TYPE_CHECKING:
    from paddlejob.api.types import PaddleJob
    from paddlejob.plan import Pod

EXAMPLE_ADDRESSES: dict[str, Callable[[int], str]] = {
    "kubernetes": lambda number: f"10.0.{number // 250}.{number % 250 + 1}",
    "local": lambda number: f"127.{number // 62500 + 1}.{number // 250 % 250}.{number % 250 + 2}",
}
"""The address of the pod with a given number, on each engine."""
EXAMPLE_TIME = 1_800_000_000.0


def plan(
    file: Annotated[str, typer.Argument(help="Job file; - reads standard input.", metavar="FILE")],
    engine: Annotated[
        str, typer.Option(help="Engine: kubernetes, or local for `pdj run`.", metavar="ENGINE")
    ] = "kubernetes",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", help="Namespace of the job.", metavar="NAMESPACE", callback=check_namespace),
    ] = "",
) -> None:
    """Print the objects and the environment that a job would get, without creating them.

    Pod addresses are examples, because real ones are assigned when the pods run.

    \b
    Example:
      pdj plan job.yaml
    """
    from paddlejob.api.checks.pods import errors_of
    from paddlejob.api.types import PaddleJob
    from paddlejob.client.describe.formats import to_yaml
    from paddlejob.client.files import jobs_in, objects_in
    from paddlejob.errors import BadInput, InvalidJob

    if engine not in EXAMPLE_ADDRESSES:
        raise BadInput(f"--engine: is {engine}; use {' or '.join(EXAMPLE_ADDRESSES)}")
    for document in jobs_in(file, objects_in(file)):
        if namespace:
            document.setdefault("metadata", {})["namespace"] = namespace
        if errors := [fault.at(document, file) for fault in errors_of(document)]:
            raise InvalidJob(errors)
        job = PaddleJob.model_validate(document)
        typer.echo("---\n" + to_yaml(*planned_objects(job, engine)), nl=False)


def crd() -> None:
    """Print the CustomResourceDefinition of PaddleJob.

    \b
    Example:
      pdj crd | kubectl create -f -
    """
    from paddlejob.api import crd as definition
    from paddlejob.client.describe.formats import to_yaml

    typer.echo(to_yaml(definition.crd()), nl=False)


def planned_objects(job: PaddleJob, engine: str) -> list[dict[str, Any]]:
    """The pods and Services of the first plan, then the environment of the plan that lifts the start barrier."""
    from paddlejob import contract
    from paddlejob.errors import BadInput
    from paddlejob.plan import Create, PodGroup, World, names
    from paddlejob.plan import plan as make_plan
    from paddlejob.plan.objects.environment import too_large
    from paddlejob.plan.objects.pod_group import is_gang, pod_group_manifest
    from paddlejob.plan.objects.workload import workload_manifest
    from paddlejob.plan.quota import queue_of

    metadata = job.metadata.model_copy(update={"uid": job.metadata.uid or "00000-example"})
    job = job.model_copy(update={"metadata": metadata})
    if message := too_large(job):
        raise BadInput(f"job {job.name}: {message}")
    groups = (PodGroup(names.pod_group(job), "example", owned=True),) if is_gang(job) else ()
    first = make_plan(job, World(pod_groups=groups), EXAMPLE_TIME)
    waiting = World(pods=_waiting_pods(job, EXAMPLE_ADDRESSES[engine]), pod_groups=groups)
    second = make_plan(job.model_copy(update={"status": first.status}), waiting, EXAMPLE_TIME)
    created = [action.manifest for action in (*first.actions, *second.actions) if isinstance(action, Create)]
    queued = [workload_manifest(job, contract.KUEUE_VERSIONS[0], None)] if queue_of(job) and engine != "local" else []
    return [*queued, *([pod_group_manifest(job)] if groups else []), *created]


def _waiting_pods(job: PaddleJob, address: Callable[[int], str]) -> tuple[Pod, ...]:
    """The pods of the first attempt, waiting at the start barrier."""
    from paddlejob.plan import Pod, PodPhase, names
    from paddlejob.plan.objects.build_mark import build_digest

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
