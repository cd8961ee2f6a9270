"""`pdj delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, Namespace, check_job_name


def command(
    names: Annotated[list[str], typer.Argument(help="Names of the jobs.", metavar="JOB")],
    namespace: Namespace = "",
    wait: Annotated[bool, typer.Option(help="Wait until the jobs are deleted.")] = True,
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Stop jobs and delete them and their logs. Data in volume claims is kept.

    \b
    Example:
      pdj delete wide-and-deep
    """
    from paddlejob.targets.choose import choose_target

    target = choose_target(cluster, context)
    for name in [check_job_name(name) for name in names]:
        typer.echo(target.delete(namespace or target.default_namespace, name, wait))
