"""`pdj why`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(name: JobName, namespace: Namespace = "", cluster: Cluster = False, context: Context = "") -> None:
    """Explain in words how a job is doing: from its status, its events and its logs.

    Example: pdj why wide-and-deep
    """
    from paddlejob.cli.explain import explain
    from paddlejob.cli.targets.target import choose_target

    place = choose_target(cluster, context)
    typer.echo(explain(place.job(namespace or place.default_namespace, name)))
