"""`pdj validate`: what is wrong with a job file, before anything is submitted."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    files: Annotated[list[str], typer.Argument(help="Job files; - is standard input.", metavar="FILE")],
) -> None:
    """Check job files offline: the same rules as the API server's, all faults at once.

    Example: pdj validate job.yaml
    """
    from paddlejob.api.validate import faults
    from paddlejob.cli.files import is_paddle_job, objects_in
    from paddlejob.errors import InvalidJob, PaddleJobError

    found: list[str] = []
    for name in files:
        try:
            jobs = [one for one in objects_in(name) if is_paddle_job(one)]
        except PaddleJobError as error:
            found.append(str(error))
            continue
        if not jobs:
            found.append(f"{name}: holds no PaddleJob; check kind and apiVersion")
        wrong = [f"{name}: {fault}" for job in jobs for fault in faults(job)]
        found += wrong
        if jobs and not wrong:
            names = ", ".join(str(job["metadata"]["name"]) for job in jobs)
            typer.echo(f"{name}: good ({names})")
    if found:
        raise InvalidJob(found)
