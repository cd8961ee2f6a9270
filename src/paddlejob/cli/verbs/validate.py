"""`pdj validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob.api.fault import Severity
from paddlejob.cli.options import JobFiles, Output

if TYPE_CHECKING:
    from paddlejob.client.start.check import Finding
    from paddlejob.client.start.load import Loaded


def command(
    files: JobFiles,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="Output format: table, json or yaml.", metavar="FORMAT")
    ] = Output.table,
) -> None:
    """Validate job files offline with the rules of the API server, and list all errors with their lines.

    Warnings are about what Kubernetes accepts but probably does not do what is intended. They do not change the exit
    status.

    \b
    Example:
      pdj validate job.yaml
    """
    from paddlejob.cli.options import machine_readable
    from paddlejob.client.start.check import findings
    from paddlejob.client.start.load import load_file
    from paddlejob.errors import InvalidJob

    found = [(loaded, findings([loaded])) for loaded in map(load_file, files)]
    errors = [str(one) for _, about in found for one in about if one.severity is Severity.ERROR]
    text = machine_readable([_report(*one) for one in found], output)
    if text is not None:
        typer.echo(text, nl=False)
        raise typer.Exit(InvalidJob.exit_code if errors else 0)
    for loaded, about in found:
        for warning in (one for one in about if one.severity is not Severity.ERROR):
            typer.echo(f"warning: {warning}", err=True)
        report = _report(loaded, about)
        if report["valid"]:
            typer.echo(f"{loaded.source}: valid ({', '.join(report['jobs'])})")
    if errors:
        raise InvalidJob(errors)


def _report(loaded: Loaded, found: list[Finding]) -> dict[str, Any]:
    """As `-o json` and `-o yaml` print it."""
    errors = [one for one in found if one.severity is Severity.ERROR]
    return {
        "file": loaded.source,
        "valid": not errors,
        "jobs": [str((job.get("metadata") or {}).get("name")) for job in loaded.jobs],
        "errors": [_described(one) for one in errors],
        "warnings": [_described(one) for one in found if one not in errors],
    }


def _described(finding: Finding) -> dict[str, Any]:
    return {"message": finding.message, "path": finding.path, "line": finding.line}
