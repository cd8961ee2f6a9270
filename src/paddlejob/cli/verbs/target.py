"""`pdj target`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from paddlejob.cli.options import Context, Namespace


class Kind(StrEnum):
    local = "local"
    cluster = "cluster"


def command(
    target: Annotated[
        Kind | None, typer.Argument(help="local: this machine. cluster: a Kubernetes cluster.", metavar="TARGET")
    ] = None,
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Show or choose the target of commands that have no --local, --cluster or --context.

    It is remembered in a file of the user. `pdj run` always trains on this machine, and `pdj submit` on a cluster.

    \b
    Example:
      pdj target cluster --context staging -n team
    """
    from paddlejob.errors import BadInput
    from paddlejob.targets.cluster.cluster_target import ClusterTarget
    from paddlejob.targets.remembered import Remembered, read_remembered, remember

    if target is None:
        if namespace or context:
            raise BadInput("name the target as well: `pdj target local` or `pdj target cluster`")
        typer.echo(str(read_remembered()))
        return
    if target is Kind.local and context:
        raise BadInput("--context: this machine has no context; use `pdj target cluster`")
    if target is Kind.cluster:
        ClusterTarget(context)
    chosen = Remembered(target is Kind.cluster, context, namespace)
    remember(chosen)
    typer.echo(f"commands now use {chosen}")
