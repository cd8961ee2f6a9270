"""`pdj list`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, Format, Output


def command(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only this namespace.")] = "",
    output: Format = Output.table,
    cluster: Cluster = False,
    context: Context = "",
) -> None:
    """List jobs, of all namespaces unless one is named.

    Example: pdj list -o wide
    """
    from paddlejob.cli.output import documents, job_table
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    views = place.jobs(namespace or None)
    if output in (Output.json, Output.yaml):
        typer.echo(documents([view.document for view in views], output, many=True))
    elif not views:
        typer.echo(f"no jobs; `{place.begin}` starts one", err=True)
    else:
        several = len({view.job.namespace for view in views}) > 1
        typer.echo(job_table(views, wide=output is Output.wide, namespaces=several))
