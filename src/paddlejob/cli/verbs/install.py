"""`pdj install`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Context

if TYPE_CHECKING:
    from paddlejob.cli.install.install import Installation
    from paddlejob.cli.targets.cluster import ClusterTarget


def command(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the operator lives.")] = "paddle-system",
    watch: Annotated[str, typer.Option(help="Work for this namespace only, with rights there only.")] = "",
    image: Annotated[str, typer.Option(help="The operator's image.", show_default="that of this version")] = "",
    replicas: Annotated[int, typer.Option(help="One works, the others stand by.", min=1)] = 1,
    context: Context = "",
    cluster: Annotated[bool, typer.Option("--cluster", hidden=True)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the objects, and change nothing.")] = False,
    wait: Annotated[bool, typer.Option(help="Return when the operator works.")] = True,
    timeout: Annotated[float, typer.Option(help="How many seconds to wait at most.")] = 180.0,
) -> None:
    """Install the operator in a cluster, or bring the one that is there to this version. Jobs run on meanwhile.

    Example: pdj install --watch training -n training
    """
    import sys

    from paddlejob.cli.install.install import Installation
    from paddlejob.cli.targets.cluster import ClusterTarget
    from paddlejob.cli.yaml_text import to_yaml
    from paddlejob.operator.manifests import IMAGE

    wanted = Installation(namespace, watch, image or IMAGE, replicas)
    if dry_run:
        sys.stdout.write(to_yaml(*wanted.objects))
        return
    _install(ClusterTarget(context), wanted, timeout if wait else None)


def _install(place: ClusterTarget, wanted: Installation, seconds: float | None) -> None:
    from paddlejob.cli.doctor.webhooks import find_leftovers, told
    from paddlejob.cli.install.install import install
    from paddlejob.cli.install.rollout import until_available
    from paddlejob.errors import NotPossible
    from paddlejob.kube.client import Client

    async def work(client: Client) -> None:
        leftovers = await find_leftovers(client)
        if any(one.stops_pods for one in leftovers):
            raise NotPossible(told(leftovers))
        if leftovers:
            typer.echo(f"warning: {told(leftovers)}", err=True)
        deployment = await install(client, wanted, typer.echo)
        if seconds is not None:
            await until_available(client, deployment, seconds, lambda words: typer.echo(f"waiting: {words}"))

    place.asked(work)
    scope = f"namespace {wanted.watch}" if wanted.watch else "all namespaces"
    done = "the operator works" if seconds is not None else "the operator is being started"
    target = f" -n {wanted.watch}" if wanted.watch else ""
    context = f" --context {place.context}" if place.context else ""
    typer.echo(f"{done} and watches {scope}; next: `pdj submit FILE{context}{target}`")
