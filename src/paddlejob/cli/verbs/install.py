"""`pdj install` and `pdj uninstall`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Context, DryRun, HiddenCluster, check_namespace

if TYPE_CHECKING:
    from paddlejob.cli.install.install import Installation
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

OperatorNamespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Namespace of the operator.", metavar="NAMESPACE", callback=check_namespace),
]


def install(
    namespace: OperatorNamespace = "paddle-system",
    watch: Annotated[
        str,
        typer.Option(
            help="Watch only this namespace instead of all, with permissions only there.", metavar="NAMESPACE"
        ),
    ] = "",
    all_namespaces: Annotated[
        bool,
        typer.Option(
            "--all-namespaces", "-A", help="Watch all namespaces, also if the installed operator watches only one."
        ),
    ] = False,
    image: Annotated[
        str,
        typer.Option(
            help="Image of the operator. Defaults to the custom image already installed, or to this version's image.",
            metavar="IMAGE",
        ),
    ] = "",
    replicas: Annotated[
        int | None,
        typer.Option(
            help="Number of replicas; one is active, the others stand by. Defaults to the installed number, else to 1.",
            metavar="N",
            min=1,
            show_default=False,
        ),
    ] = None,
    context: Context = "",
    cluster: HiddenCluster = False,
    dry_run: DryRun = False,
    wait: Annotated[bool, typer.Option(help="Wait until the operator is ready.")] = True,
    timeout: Annotated[float, typer.Option(help="Longest time to wait.", metavar="SECONDS")] = 180.0,
) -> None:
    """Install the operator in a cluster, or update it to this version. Running jobs are not affected.

    \b
    Example:
      pdj install --watch training -n training
    """
    from paddlejob.cli.install.install import Installation
    from paddlejob.client.describe.formats import to_yaml
    from paddlejob.errors import BadInput
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

    if watch and all_namespaces:
        raise BadInput("--watch and --all-namespaces exclude each other; give one of them")
    wanted = Installation(namespace, watch, image, replicas or 0, widen=all_namespaces)
    if dry_run:
        typer.echo(to_yaml(*wanted.objects), nl=False)
        return
    _install(ClusterTarget(context), wanted, timeout if wait else None)


def _install(target: ClusterTarget, wanted: Installation, timeout: float | None) -> None:
    from paddlejob.cli.doctor.webhooks import describe, find_leftovers
    from paddlejob.cli.install.install import install as apply
    from paddlejob.cli.install.rollout import wait_until_available
    from paddlejob.errors import NotPossible
    from paddlejob.kube.client import Client

    async def run(client: Client) -> None:
        leftovers = await find_leftovers(client)
        if any(leftover.blocks_pods for leftover in leftovers):
            raise NotPossible(describe(leftovers))
        if leftovers:
            typer.echo(f"warning: {describe(leftovers)}", err=True)
        deployment = await apply(client, wanted, typer.echo, target.context_flag)
        if timeout is not None:
            await wait_until_available(client, deployment, timeout, lambda text: typer.echo(f"waiting: {text}"))

    target.with_client(run)
    scope = f"namespace {wanted.watch}" if wanted.watch else "all namespaces"
    state = "The operator is ready and watches" if timeout is not None else "The operator is starting and will watch"
    namespace = f" -n {wanted.watch}" if wanted.watch else ""
    typer.echo(f"{state} {scope}; next: `pdj submit FILE{target.context_flag}{namespace}`")


def uninstall(
    namespace: OperatorNamespace = "paddle-system",
    keep_jobs: Annotated[bool, typer.Option("--keep-jobs", help="Keep the PaddleJob CRD and all jobs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    context: Context = "",
    cluster: HiddenCluster = False,
) -> None:
    """Remove the operator and all PaddleJobs from a cluster.

    Lists what will be deleted and asks for confirmation.

    \b
    Example:
      pdj uninstall --keep-jobs
    """
    import sys

    from paddlejob.cli.install.uninstall import perform_removal, plan_removal
    from paddlejob.errors import BadInput
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

    target = ClusterTarget(context)
    removal = target.with_client(lambda client: plan_removal(client, namespace, keep_jobs))
    if removal.warnings:
        lines = ["Removing the operator:", *(f"  {warning}" for warning in removal.warnings)]
        typer.echo("\n".join(lines), err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("cannot ask for confirmation without a terminal; confirm with --yes")
        if not typer.confirm(f"Remove the operator from {target.access.server}?"):
            raise typer.Exit(1)
    target.with_client(lambda client: perform_removal(client, removal, typer.echo))
