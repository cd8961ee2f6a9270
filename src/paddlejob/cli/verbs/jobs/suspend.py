"""`pdj suspend` and `pdj resume`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def suspend(name: JobName, namespace: Namespace = "", cluster: Cluster = None, context: Context = "") -> None:
    """Stop a job but keep it, so that it can be resumed later.

    `pdj resume` continues the training from the last checkpoint.

    \b
    Example:
      pdj suspend resnet
    """
    flags = _change(name, namespace, cluster, context, suspend=True)
    typer.echo(f"{name} suspended; run `pdj resume {name}{flags}` to continue")


def resume(name: JobName, namespace: Namespace = "", cluster: Cluster = None, context: Context = "") -> None:
    """Resume a suspended or interrupted job in the background.

    \b
    Example:
      pdj resume resnet
    """
    flags = _change(name, namespace, cluster, context, suspend=False)
    typer.echo(f"{name} resumed in the background; follow it with `pdj logs -f {name}{flags}`")


def _change(name: str, namespace: str, cluster: bool | None, context: str, suspend: bool) -> str:
    """Change the job; returns the flags that select it."""
    from paddlejob.client.targets.target import choose_target

    target = choose_target(cluster, context)
    namespace = namespace or target.default_namespace
    target.change(namespace, name, suspend=suspend)
    return target.flags(namespace)
