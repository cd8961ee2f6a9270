"""`pdj validate`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob.cli.options import JobFiles, Output

if TYPE_CHECKING:
    from paddlejob.api.fault import Fault

Object = dict[str, Any]
LARGE_JOB = 1000
"""Replicas below which the environment of a job always fits into a ConfigMap."""


@dataclass(frozen=True)
class Finding:
    message: str
    path: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass
class Report:
    """What is wrong with one file."""

    file: str
    valid: bool = True
    jobs: list[str] = field(default_factory=list)
    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def lines(self, findings: list[Finding]) -> list[str]:
        return [f"{self.file}:{one.line}: {one}" if one.line else f"{self.file}: {one}" for one in findings]


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
    from paddlejob.cli.output.formats import machine_readable
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
    from paddlejob.cli.files import jobs_in, objects_in
    from paddlejob.errors import BadFile, PaddleJobError

    report = Report("standard input" if name == "-" else name)
    try:
        jobs = jobs_in(name, objects_in(name))
    except BadFile as error:
        report.errors.append(Finding(error.problem, line=error.line or None))
    except PaddleJobError as error:
        report.errors.append(Finding(str(error)))
    else:
        report.jobs = [_name(job) for job in jobs]
        for job in jobs:
            _check_job(job, report)
        report.errors += _duplicates(jobs)
    report.valid = not report.errors
    return report


def _check_job(job: Object, report: Report) -> None:
    from paddlejob.api.fault import Severity
    from paddlejob.api.launcher import launcher_warnings
    from paddlejob.api.pod_check import check_pods
    from paddlejob.api.types import PaddleJob
    from paddlejob.api.validate import find_faults

    faults = find_faults(job)
    if not faults:
        faults = check_pods(job)
        report.warnings += [Finding(warning) for warning in launcher_warnings(PaddleJob.model_validate(job))]
        if message := _too_large(job):
            report.errors.append(Finding(f"job {_name(job)}: {message}"))
    for fault in faults:
        found = report.errors if fault.severity is Severity.ERROR else report.warnings
        found.append(_finding(job, fault))


def _finding(job: Object, fault: Fault) -> Finding:
    from paddlejob.api.fault import line_of

    return Finding(fault.message, fault.where, line_of(job, fault.path) or None)


def _duplicates(jobs: list[Object]) -> list[Finding]:
    from collections import Counter

    counts = Counter(map(_qualified_name, jobs))
    return [Finding(f"two jobs are named {name}; rename one") for name, count in counts.items() if count > 1]


def _name(job: Object) -> str:
    return str((job.get("metadata") or {}).get("name"))


def _qualified_name(job: Object) -> str:
    namespace = (job.get("metadata") or {}).get("namespace")
    return f"{namespace}/{_name(job)}" if namespace else _name(job)


def _too_large(job: Object) -> str:
    """Why no cluster can run a job that the API server accepts."""
    if sum(int((job["spec"].get(role) or {}).get("replicas", 1)) for role in ("ps", "worker", "heter")) < LARGE_JOB:
        return ""
    from paddlejob.api.types import PaddleJob
    from paddlejob.plan.objects.environment import too_large

    return too_large(PaddleJob.model_validate(job))
