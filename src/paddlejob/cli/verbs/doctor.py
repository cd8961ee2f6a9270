"""`pdj doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Cluster, Context, Output, PlainFormat, Python, check_namespace, machine_readable

if TYPE_CHECKING:
    from paddlejob.cli.doctor.check import Check


def command(
    python: Python = "",
    cluster: Cluster = None,
    context: Context = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace to check in the cluster.",
            metavar="NAMESPACE",
            callback=check_namespace,
        ),
    ] = "",
    output: PlainFormat = Output.table,
) -> None:
    """Check whether this machine or a cluster is ready for training, and list what to change.

    The exit status is 1 if changes are needed.

    \b
    Example:
      pdj doctor --cluster -n training
    """
    from dataclasses import asdict

    from paddlejob.cli.doctor.check import Verdict
    from paddlejob.cli.doctor.machine import check_machine
    from paddlejob.targets.choose import selects_cluster

    checks = _check_cluster(context, namespace) if selects_cluster(cluster, context) else check_machine(python)
    text = machine_readable([{**asdict(check), "verdict": str(check.verdict)} for check in checks], output)
    typer.echo(_page(checks) if text is None else text, nl=text is None)
    if any(check.verdict is Verdict.CHANGE for check in checks):
        raise typer.Exit(1)


def _check_cluster(context: str, namespace: str) -> list[Check]:
    from paddlejob.cli.doctor.check import change
    from paddlejob.cli.doctor.cluster import check_cluster
    from paddlejob.errors import NoCredentials
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

    try:
        target = ClusterTarget(context)
    except NoCredentials as error:
        return [change("cluster", "not configured", str(error))]
    return target.with_client(lambda client: check_cluster(client, target, namespace or target.default_namespace))


def _page(checks: list[Check]) -> str:
    """A table, then the advice on lines of its own, where commands are easy to copy."""
    from paddlejob.cli.doctor.check import Verdict
    from paddlejob.cli.output.tables import columns

    parts = [columns(["CHECK", "VERDICT", "FOUND"], [[one.what, str(one.verdict), one.found] for one in checks])]
    for verdict, title in ((Verdict.CHANGE, "Changes needed:"), (Verdict.NOTE, "Notes:")):
        lines = [f"  {one.what}: {one.advice}" for one in checks if one.verdict is verdict and one.advice]
        parts += ["\n".join([title, *lines])] if lines else []
    if all(one.verdict is not Verdict.CHANGE for one in checks):
        parts.append("No changes needed.")
    return "\n\n".join(parts)
