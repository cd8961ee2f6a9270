"""`pdj web`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Cluster, Context, check_namespace

if TYPE_CHECKING:
    from paddlejob.web.sources.source import Source


def command(
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on. Defaults to 8700, or a free port.", metavar="PORT", min=0, max=65535),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.", metavar="HOST")] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the URL but open no browser.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show jobs but do not change them.")] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Show only the jobs in this namespace.",
            metavar="NAMESPACE",
            callback=check_namespace,
        ),
    ] = "",
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Show jobs in a browser: their progress, curves, logs and attempts.

    The server runs on this machine with your rights until you press Ctrl-C. It shows the jobs of this machine, and
    those of the cluster if --cluster, --context or `pdj target` selects one.

    \b
    Example:
      pdj web
      pdj web --cluster -n team-a --read-only
    """
    from paddlejob.web.access import is_loopback
    from paddlejob.web.server import Options, serve

    if not is_loopback(host):
        typer.echo(
            f"warning: {host} can be reached from other machines, and the connection is not encrypted; whoever has the "
            "URL can see and change your jobs. Prefer an SSH tunnel: ssh -L 8700:localhost:8700 HOST",
            err=True,
        )
    options = Options(host, port, browser=not no_browser, read_only=read_only)
    serve(_sources(namespace, cluster, context), options, _print_url)


def _sources(namespace: str, cluster: bool | None, context: str) -> list[Source]:
    from paddlejob.client.targets.remembered import read_remembered
    from paddlejob.client.targets.selection import selects_cluster
    from paddlejob.web.sources.local.source import LocalSource

    sources: list[Source] = [LocalSource(namespace=namespace)]
    selected = selects_cluster(cluster, context)
    if selected or (selected is None and read_remembered().cluster):
        from paddlejob.client.targets.target import cluster_target
        from paddlejob.web.sources.cluster.source import ClusterSource

        sources.append(ClusterSource(cluster_target(context), namespace))
    return sources


def _print_url(url: str) -> None:
    typer.echo(f"Open {url}\nPress Ctrl-C to stop.")
