"""`pdj clean`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import check_job_name, check_namespace


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Names of jobs. Defaults to all.", metavar="JOB")] = None,
    keep: Annotated[int, typer.Option(help="Keep the last N previous runs of each job.", metavar="N", min=0)] = 0,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Clean only jobs in this namespace.",
            metavar="NAMESPACE",
            callback=check_namespace,
        ),
    ] = "",
) -> None:
    """Remove the logs of previous runs on this machine. Jobs themselves, and their present logs, are kept.

    \b
    Example:
      pdj clean --keep 2
    """
    from paddlejob.client.describe.humanize import plural, size
    from paddlejob.client.runs import clean
    from paddlejob.targets.local.local_target import LocalTarget

    target = LocalTarget()
    chosen = [check_job_name(name) for name in names or []]
    removed = clean(target, namespace or None, chosen, keep)
    if not removed:
        typer.echo("No previous runs to remove.")
        return
    typer.echo(f"removed {plural(len(removed), 'previous run')}, {size(sum(run.size for run in removed))}")
