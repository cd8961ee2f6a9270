"""`pdj validate`."""

from __future__ import annotations

from typing import Any

import typer

from paddlejob.cli.options import JobFiles

LARGE_JOB = 1000
"""Replicas below which the environment of a job always fits into a ConfigMap."""


def command(files: JobFiles) -> None:
    """Validate job files offline with the rules of the API server, and list all errors.

    \b
    Example:
      pdj validate job.yaml
    """
    from paddlejob.cli.files import jobs_in, objects_in
    from paddlejob.errors import InvalidJob, PaddleJobError

    errors: list[str] = []
    for name in files:
        try:
            jobs = jobs_in(name, objects_in(name))
        except PaddleJobError as error:
            errors.append(str(error))
            continue
        file_errors = [f"{name}: {error}" for error in _errors(jobs)]
        errors += file_errors
        if not file_errors:
            for warning in _warnings(jobs):
                typer.echo(f"warning: {name}: {warning}", err=True)
            typer.echo(f"{name}: valid ({', '.join(map(_name, jobs))})")
    if errors:
        raise InvalidJob(errors)


def _errors(jobs: list[dict[str, Any]]) -> list[str]:
    from collections import Counter

    from paddlejob.api.validate import faults

    errors = [fault for job in jobs for fault in faults(job)]
    errors = errors or [f"job {_name(job)}: {error}" for job in jobs if (error := _too_large(job))]
    duplicates = [name for name, count in Counter(map(_qualified_name, jobs)).items() if count > 1]
    return errors + [f"two jobs are named {name}; rename one" for name in duplicates]


def _warnings(jobs: list[dict[str, Any]]) -> list[str]:
    from paddlejob.api.launcher import launcher_warnings
    from paddlejob.api.types import PaddleJob

    return [warning for job in jobs for warning in launcher_warnings(PaddleJob.model_validate(job))]


def _name(job: dict[str, Any]) -> str:
    return str((job.get("metadata") or {}).get("name"))


def _qualified_name(job: dict[str, Any]) -> str:
    namespace = (job.get("metadata") or {}).get("namespace")
    return f"{namespace}/{_name(job)}" if namespace else _name(job)


def _too_large(job: dict[str, Any]) -> str:
    """Why no cluster can run a job that the API server accepts."""
    if sum(int((job["spec"].get(role) or {}).get("replicas", 1)) for role in ("ps", "worker", "heter")) < LARGE_JOB:
        return ""
    from paddlejob.api.types import PaddleJob
    from paddlejob.plan.objects.environment import too_large

    return too_large(PaddleJob.model_validate(job))
