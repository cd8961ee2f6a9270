"""`pdj validate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import JobFiles, Output

if TYPE_CHECKING:
    from paddlejob.client.file_check import Report


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
    from paddlejob.errors import InvalidJob

    reports = [_check(name) for name in files]
    text = machine_readable([asdict(report) for report in reports], output)
    if text is not None:
        typer.echo(text, nl=False)
        raise typer.Exit(0 if all(report.valid for report in reports) else InvalidJob.exit_code)
    for report in reports:
        for line in report.lines(report.warnings):
            typer.echo(f"warning: {line}", err=True)
        if report.valid:
            typer.echo(f"{report.file}: valid ({', '.join(report.jobs)})")
    if errors := [line for report in reports for line in report.lines(report.errors)]:
        raise InvalidJob(errors)


def _check(name: str) -> Report:
    from paddlejob.api.documents import STDIN
    from paddlejob.client.file_check import Finding, Report, check_objects
    from paddlejob.client.files import jobs_in, objects_in
    from paddlejob.errors import BadFile, PaddleJobError

    source = STDIN if name == "-" else name
    try:
        objects = objects_in(name)
        jobs_in(name, objects)
    except BadFile as error:
        return Report(source, valid=False, errors=[Finding(error.problem, line=error.line or None)])
    except PaddleJobError as error:
        return Report(source, valid=False, errors=[Finding(str(error))])
    return check_objects(source, objects)
