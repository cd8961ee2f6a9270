"""`pdj doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Cluster, Context, Format, Output

if TYPE_CHECKING:
    from paddlejob.cli.doctor.check import Check


def command(
    python: Annotated[str, typer.Option(help="The Python to train with; else that of the active environment.")] = "",
    cluster: Cluster = False,
    context: Context = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where in the cluster you train.")] = "",
    output: Format = Output.table,
) -> None:
    """Check this machine, or with --cluster or --context a cluster, and say what to change.

    The exit status is 1 if something must be changed. Example: pdj doctor --cluster -n training
    """
    import json
    from dataclasses import asdict

    from paddlejob.cli.doctor.check import Verdict
    from paddlejob.cli.plugin import is_plugin
    from paddlejob.cli.yaml_text import to_yaml

    checks = _cluster(context, namespace) if cluster or context or is_plugin() else _machine(python)
    found = [{**asdict(check), "verdict": str(check.verdict)} for check in checks]
    if output is Output.json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif output is Output.yaml:
        typer.echo(to_yaml(found).rstrip())
    else:
        typer.echo(_page(checks))
    if any(check.verdict is Verdict.CHANGE for check in checks):
        raise typer.Exit(1)


def _machine(python: str) -> list[Check]:
    from paddlejob.cli.doctor.machine import check_machine

    return check_machine(python)


def _cluster(context: str, namespace: str) -> list[Check]:
    from paddlejob.cli.doctor.check import change
    from paddlejob.cli.doctor.cluster import check_cluster
    from paddlejob.cli.targets.cluster import ClusterTarget
    from paddlejob.errors import NoCredentials

    try:
        place = ClusterTarget(context)
    except NoCredentials as error:
        return [change("cluster", "none is configured", str(error))]
    return place.asked(lambda client: check_cluster(client, place, namespace or place.default_namespace))


def _page(checks: list[Check]) -> str:
    """A table, and below it what to change, where commands can be copied from."""
    from paddlejob.cli.doctor.check import Verdict
    from paddlejob.cli.output import columns

    table = columns(["CHECK", "VERDICT", "FOUND"], [[one.what, str(one.verdict), one.found] for one in checks])
    parts = [table]
    for verdict, title in ((Verdict.CHANGE, "To change:"), (Verdict.NOTE, "To know:")):
        lines = [f"  {one.what}: {one.advice}" for one in checks if one.verdict is verdict and one.advice]
        parts += ["\n".join([title, *lines])] if lines else []
    if all(one.verdict is not Verdict.CHANGE for one in checks):
        parts.append("Nothing must be changed.")
    return "\n\n".join(parts)
