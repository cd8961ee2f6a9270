"""`pdj web`."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from platform import node
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from paddlejob.cli.options import Cluster, Context, check_namespace
from paddlejob.errors import BadArgument, NotPossible

if TYPE_CHECKING:
    from paddlejob.targets.target import Target

DEFAULT_HOST = "127.0.0.1"


def command(
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on. Defaults to 8700, or a free port.", metavar="PORT", min=0, max=65535),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.", metavar="HOST")] = DEFAULT_HOST,
    socket: Annotated[
        Path | None,
        typer.Option(help="Unix socket to listen on instead of a port; only you can connect to it.", metavar="PATH"),
    ] = None,
    url: Annotated[
        bool, typer.Option("--url", help="Print a new URL for each server that runs already, and exit.")
    ] = False,
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

    A URL works once and starts a session of your browser; `pdj web --url` prints another one.

    \b
    Example:
      pdj web
      pdj web --cluster -n team-a --read-only
      pdj web --socket ~/pdj.sock
    """
    from paddlejob.local.state.store import state_directory
    from paddlejob.web.access import is_loopback
    from paddlejob.web.job_list import JobList
    from paddlejob.web.server import Options, serve

    servers = state_directory() / "web"
    if url:
        _print_new_urls(servers, port)
        return
    if socket and (port is not None or host != DEFAULT_HOST):
        raise BadArgument("socket", "cannot be combined with --port or --host; it is listened on instead of a port")
    if not is_loopback(host):
        typer.echo(
            f"warning: {host} can be reached from other machines, and the connection is not encrypted; whoever reads "
            "along can see and change your jobs. Prefer an SSH tunnel: ssh -L 127.0.0.1:8700:127.0.0.1:8700 HOST",
            err=True,
        )
    path = socket and socket.expanduser().absolute()
    options = Options(host, port, browser=not no_browser, read_only=read_only, socket=path)
    lists = [JobList(target, namespace) for target in _targets(cluster, context)]
    serve(lists, options, servers, partial(_print_url, path))


def _print_new_urls(servers: Path, port: int | None) -> None:
    from paddlejob.web.sessions import running_servers

    found = [one for one in running_servers(servers) if port in (None, urlsplit(one.url).port)]
    if not found:
        raise NotPossible("no server of `pdj web` runs here; start one with `pdj web`")
    for one in found:
        typer.echo(one.new_link())


def _targets(cluster: bool | None, context: str) -> list[Target]:
    from paddlejob.targets.choose import cluster_target, selects_cluster
    from paddlejob.targets.local.local_target import LocalTarget
    from paddlejob.targets.remembered import read_remembered

    selected = selects_cluster(cluster, context)
    remembered = selected is None and read_remembered().cluster
    return [LocalTarget(), cluster_target(context)] if selected or remembered else [LocalTarget()]


def _print_url(socket: Path | None, url: str) -> None:
    if socket:
        tunnel = f"ssh -L 127.0.0.1:8700:{shlex.quote(str(socket))} {node()}"
        typer.echo(f"On the machine with your browser, run {tunnel}")
    typer.echo(f"Open {url}\nThe URL works once; `pdj web --url` prints another one. Press Ctrl-C to stop.")
