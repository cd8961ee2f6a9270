"""`pdj get`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, Format, JobName, Namespace, Output


def command(
    name: JobName,
    namespace: Namespace = "",
    output: Format = Output.table,
    cluster: Cluster = False,
    context: Context = "",
) -> None:
    """Show a job, its replicas and where their logs are.

    Example: pdj get wide-and-deep -o yaml
    """
    from paddlejob.cli.output import documents, job_page
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    view = place.job(namespace or place.default_namespace, name)
    if output in (Output.json, Output.yaml):
        typer.echo(documents([view.document], output, many=False))
    else:
        typer.echo(job_page(view))
