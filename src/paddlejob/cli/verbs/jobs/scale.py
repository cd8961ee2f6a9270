"""`pdj scale`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(
    name: JobName,
    workers: Annotated[int, typer.Argument(help="Number of workers.", metavar="WORKERS")],
    namespace: Namespace = "",
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Change the number of workers of an elastic or suspended job.

    The job continues from its last checkpoint. A job with parameter servers and withGloo: 0 does not stop. An elastic
    job with worker.requests grows when there is room for more workers, and trains with those it has until then.

    \b
    Example:
      pdj scale resnet 4
    """
    from paddlejob.client.describe.humanize import plural
    from paddlejob.client.targets.target import choose_target

    target = choose_target(cluster, context)
    target.change(namespace or target.default_namespace, name, worker={"replicas": workers})
    typer.echo(f"{name} scaled to {plural(workers, 'worker')}")
