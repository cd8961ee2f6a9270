"""`pdj plan`: the very objects that would be created, before anything is."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    file: Annotated[str, typer.Argument(help="A job file; - is standard input.", metavar="FILE")],
    engine: Annotated[str, typer.Option(help="kubernetes, or local for the embedded engine.")] = "kubernetes",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the job would run.")] = "",
) -> None:
    """Print the objects and the environment that a job would get, and create nothing.

    Addresses are not known before pods run; examples stand in for them. Example: pdj plan job.yaml
    """
    import sys

    from paddlejob.api.validate import parse
    from paddlejob.cli.files import is_paddle_job, no_job_in, objects_in
    from paddlejob.cli.preview import ENGINES, preview
    from paddlejob.cli.yaml_text import to_yaml
    from paddlejob.errors import BadInput

    if engine not in ENGINES:
        raise BadInput(f"--engine: is {engine}; use {' or '.join(ENGINES)}")
    objects = objects_in(file)
    jobs = [one for one in objects if is_paddle_job(one)]
    if not jobs:
        raise no_job_in(file, objects)
    for document in jobs:
        if namespace:
            document["metadata"]["namespace"] = namespace
        sys.stdout.write("---\n" + to_yaml(*preview(parse(document, file), engine)))
