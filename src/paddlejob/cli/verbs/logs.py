"""`pdj logs`."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(
    name: JobName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they grow, until the job rests.")] = False,
    role: Annotated[str, typer.Option(help="Only ps, worker or heter.")] = "",
    index: Annotated[int | None, typer.Option(help="Only the replica with this number.")] = None,
    attempt: Annotated[int, typer.Option(help="Of this attempt; else the newest.")] = 0,
    tail: Annotated[int, typer.Option(help="Only the last so many lines of each.")] = -1,
    container: Annotated[str, typer.Option("--container", "-c", help="Of a sidecar or init container.")] = "",
    namespace: Namespace = "",
    cluster: Cluster = False,
    context: Context = "",
) -> None:
    """Print what the replicas of a job have written; of several, each line begins with its replica.

    Example: pdj logs wide-and-deep -f --role worker --index 0
    """
    import sys

    from paddlejob.cli.targets.target import LogChoice, choose_target
    from paddlejob.errors import BadInput

    if role not in ("", "ps", "worker", "heter"):
        raise BadInput(f"--role: is {role}; use ps, worker or heter")
    choice = LogChoice(role, index, attempt, container, follow, tail)
    place = choose_target(cluster, context)
    for piece in place.logs(namespace or place.default_namespace, name, choice):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
