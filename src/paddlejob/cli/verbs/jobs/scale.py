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
    from paddlejob.client.actions import scale
    from paddlejob.targets.choose import choose_target
    from paddlejob.targets.sync import run_outside_loop

    target = choose_target(cluster, context)
    typer.echo(run_outside_loop(scale(target.target, namespace or target.default_namespace, name, workers)))
