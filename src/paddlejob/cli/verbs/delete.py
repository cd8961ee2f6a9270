"""`pdj delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, Namespace


def command(
    names: Annotated[list[str], typer.Argument(help="Names of jobs.", metavar="JOB")],
    namespace: Namespace = "",
    wait: Annotated[bool, typer.Option(help="Return when nothing of it is left.")] = True,
    cluster: Cluster = False,
    context: Context = "",
) -> None:
    """Delete jobs: what runs of them ends, their logs go; what claims hold stays.

    Example: pdj delete wide-and-deep
    """
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    for name in names:
        typer.echo(place.delete(namespace or place.default_namespace, name, wait))
