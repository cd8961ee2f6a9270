"""`pdj scale`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(
    name: JobName,
    workers: Annotated[int, typer.Argument(help="How many workers.", metavar="WORKERS")],
    namespace: Namespace = "",
    cluster: Cluster = False,
    context: Context = "",
) -> None:
    """Change the number of workers of an elastic or suspended job; it goes on from its checkpoint.

    Example: pdj scale resnet 4
    """
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    place.change(namespace or place.default_namespace, name, worker={"replicas": workers})
    typer.echo(f"job {name} now wants {workers} workers")
