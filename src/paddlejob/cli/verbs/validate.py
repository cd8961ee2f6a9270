"""`pdj validate`: what is wrong with a job file, before anything is submitted."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def command(
    files: Annotated[list[str], typer.Argument(help="Job files; - is standard input.", metavar="FILE")],
) -> None:
    """Check job files offline: the same rules as the API server's, all faults at once.

    Example: pdj validate job.yaml
    """
    from collections import Counter

    from paddlejob.api.validate import faults
    from paddlejob.cli.files import is_paddle_job, no_job_in, objects_in
    from paddlejob.errors import InvalidJob, PaddleJobError

    found: list[str] = []
    for name in files:
        try:
            objects = objects_in(name)
        except PaddleJobError as error:
            found.append(str(error))
            continue
        jobs = [one for one in objects if is_paddle_job(one)]
        if not jobs:
            found.append(str(no_job_in(name, objects)))
        wrong = [f"{name}: {fault}" for job in jobs for fault in faults(job)]
        wrong = wrong or [f"{name}: job {_name(job)}: {fault}" for job in jobs if (fault := _oversized(job))]
        twice = [one for one, count in Counter(map(_whole_name, jobs)).items() if count > 1]
        wrong += [f"{name}: two jobs are named {one}; rename one" for one in twice]
        found += wrong
        if jobs and not wrong:
            names = ", ".join(map(_name, jobs))
            typer.echo(f"{name}: good ({names})")
    if found:
        raise InvalidJob(found)


def _name(job: dict[str, Any]) -> str:
    return str((job.get("metadata") or {}).get("name"))


def _whole_name(job: dict[str, Any]) -> str:
    namespace = (job.get("metadata") or {}).get("namespace")
    return f"{namespace}/{_name(job)}" if namespace else _name(job)


def _oversized(job: dict[str, Any]) -> str:
    """What the API server takes and no machine can run."""
    if sum(int((job["spec"].get(role) or {}).get("replicas", 1)) for role in ("ps", "worker", "heter")) < 1000:
        return ""
    from paddlejob.api.types import PaddleJob
    from paddlejob.plan.objects.environment import too_large

    return too_large(PaddleJob.model_validate(job))
