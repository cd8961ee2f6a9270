"""`pdj suspend`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(name: JobName, namespace: Namespace = "", cluster: Cluster = False, context: Context = "") -> None:
    """Stop a job and keep it, so that `pdj resume` can let it go on from its checkpoint.

    Example: pdj suspend resnet
    """
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    namespace = namespace or place.default_namespace
    place.change(namespace, name, suspend=True)
    typer.echo(f"job {name} is suspended; `pdj resume {name}{place.flags(namespace)}` lets it go on")
