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
    from paddlejob.cli.place import choose_place
    from paddlejob.cli.render import documents, job_page

    place = choose_place(cluster, context)
    view = place.job(namespace or place.default_namespace, name)
    if output in (Output.json, Output.yaml):
        typer.echo(documents([view.document], output, many=False))
    else:
        typer.echo(job_page(view))
