"""`pdj uninstall`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Context


def command(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the operator lives.")] = "paddle-system",
    keep_jobs: Annotated[bool, typer.Option("--keep-jobs", help="Leave the definition of PaddleJob and jobs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    context: Context = "",
    cluster: Annotated[bool, typer.Option("--cluster", hidden=True)] = False,
) -> None:
    """Remove the operator from a cluster, and with it all PaddleJobs; says what goes, and asks.

    Example: pdj uninstall --keep-jobs
    """
    import sys

    from paddlejob.cli.install.removal import carry_out, look
    from paddlejob.cli.targets.cluster import ClusterTarget
    from paddlejob.errors import BadInput

    place = ClusterTarget(context)
    removal = place.asked(lambda client: look(client, namespace, keep_jobs))
    if removal.warnings:
        typer.echo(
            "\n".join(["this removes the operator, and with it:", *(f"  {line}" for line in removal.warnings)]),
            err=True,
        )
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("nobody can be asked here; say --yes to remove all of it")
        if not typer.confirm(f"Remove it from {place.access.server}?"):
            raise typer.Exit(1)
    place.asked(lambda client: carry_out(client, removal, typer.echo))
