"""`pdj plan` and `pdj crd`: the verbs that print objects without creating them."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import check_namespace


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
    from paddlejob.client.planned import EXAMPLE_ADDRESSES, planned_objects
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
