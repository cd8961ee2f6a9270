"""`pdj logs`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace

ROLES = ("ps", "worker", "heter")


def command(
    name: JobName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stream new output until the job ends.")] = False,
    role: Annotated[
        str, typer.Option(help="Show only replicas with this role: ps, worker or heter.", metavar="ROLE")
    ] = "",
    index: Annotated[int | None, typer.Option(help="Show only the replica with this index.", metavar="INDEX")] = None,
    attempt: Annotated[
        int, typer.Option(help="Show this attempt instead of the latest.", metavar="N", show_default=False)
    ] = 0,
    tail: Annotated[
        int,
        typer.Option(
            help="Show the last N lines of each replica; with --grep, the last N that match.",
            metavar="N",
            show_default=False,
        ),
    ] = -1,
    since: Annotated[
        str, typer.Option(help="Show only output of the last minutes or hours, such as 10m.", metavar="DURATION")
    ] = "",
    grep: Annotated[
        str, typer.Option(help="Show only lines that match this regular expression.", metavar="PATTERN")
    ] = "",
    run: Annotated[
        int,
        typer.Option(help="Show this previous run; `pdj list --history` lists them.", metavar="N", show_default=False),
    ] = 0,
    save: Annotated[str, typer.Option(help="Also write the lines to files in this directory.", metavar="DIR")] = "",
    container: Annotated[
        str,
        typer.Option("--container", "-c", help="Show this sidecar or init container instead.", metavar="NAME"),
    ] = "",
    namespace: Namespace = "",
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Print the logs of a job's replicas.

    If there are several replicas, every line starts with the name of its replica.

    \b
    Example:
      pdj logs wide-and-deep -f --role worker --index 0
      pdj logs wide-and-deep --grep 'loss|Error' --since 10m
    """
    import time

    from paddlejob.cli.options import parse_duration
    from paddlejob.cli.output.logs import copied, print_logs, say_retry
    from paddlejob.errors import BadInput
    from paddlejob.logs.selection import LogSelection, line_pattern
    from paddlejob.targets.choose import choose_target

    if role not in ("", *ROLES):
        raise BadInput(f"--role {role}: use ps, worker or heter")
    if tail < -1:
        raise BadInput(f"--tail {tail}: use 0 or more")
    selection = LogSelection(
        role,
        index,
        attempt,
        container,
        tail,
        since=max(0.0, time.time() - parse_duration("--since", since)) if since else None,
        run=run,
        pattern=line_pattern(grep) if grep else None,
    )
    target = choose_target(cluster, context)
    several, batches = target.logs(namespace or target.default_namespace, name, selection, follow, say_retry)
    print_logs(several, copied(several, batches, save, name) if save else batches)
