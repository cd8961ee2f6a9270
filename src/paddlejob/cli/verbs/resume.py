"""`pdj resume`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(name: JobName, namespace: Namespace = "", cluster: Cluster = False, context: Context = "") -> None:
    """Let a suspended or interrupted job go on.

    Example: pdj resume resnet
    """
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    namespace = namespace or place.default_namespace
    place.change(namespace, name, suspend=False)
    typer.echo(f"job {name} goes on in the background; `pdj logs -f {name}{place.flags(namespace)}` shows it")
