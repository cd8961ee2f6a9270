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
    _act("suspend", name, namespace, cluster, context)


def resume(name: JobName, namespace: Namespace = "", cluster: Cluster = None, context: Context = "") -> None:
    """Resume a suspended or interrupted job in the background.

    \b
    Example:
      pdj resume resnet
    """
    _act("resume", name, namespace, cluster, context)


def _act(action: str, name: str, namespace: str, cluster: bool | None, context: str) -> None:
    from paddlejob.client import actions
    from paddlejob.targets.choose import choose_target
    from paddlejob.targets.sync import run_outside_loop

    target = choose_target(cluster, context)
    act = actions.suspend if action == "suspend" else actions.resume
    typer.echo(run_outside_loop(act(target.target, namespace or target.default_namespace, name)))
