"""`pdj rerun`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(name: JobName, namespace: Namespace = "", cluster: Cluster = None, context: Context = "") -> None:
    """Run a finished job again, from the start and in the background.

    The job keeps its name and its options. On this machine the logs of the previous run are kept (`pdj list
    --history`); on a cluster they are deleted with its pods.

    \b
    Example:
      pdj rerun resnet
    """
    from paddlejob.client.start.rerun import rerun
    from paddlejob.targets.choose import choose_target
    from paddlejob.targets.sync import run_outside_loop

    target = choose_target(cluster, context)
    namespace = namespace or target.default_namespace
    for warning in run_outside_loop(rerun(target.target, namespace, name)):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{name} runs again; follow it with `pdj logs -f {name}{target.flags(namespace)}`")
