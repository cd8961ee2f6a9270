"""`pdj convert`: another kind of job as a PaddleJob."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    file: Annotated[str, typer.Argument(help="A file with a Job or Kubeflow's PaddleJob; - is standard input.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the result to this file.", metavar="FILE")
    ] = None,
) -> None:
    """Turn a batch/v1 Job that trains, or a PaddleJob of Kubeflow, into a PaddleJob.

    What has no counterpart is named in notes: comments above the job, and lines on standard error. Other objects of
    the file stay as they are.

    Example: pdj convert paddle-cluster-job.yaml -o job.yaml
    """
    from paddlejob.cli.files import objects_in

    texts, notes = _converted(objects_in(file), file)
    text = "---\n".join(texts)
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        typer.echo(text, nl=False)
    if output or not sys.stdout.isatty():
        for note in notes:
            typer.echo(f"note: {note}", err=True)


def _converted(objects: list[dict[str, Any]], source: str) -> tuple[list[str], list[str]]:
    from paddlejob.api.convert import convert, is_kubeflow_job, is_training_job
    from paddlejob.api.validate import faults
    from paddlejob.cli.yaml_text import to_yaml
    from paddlejob.errors import InvalidJob

    found = [one for one in objects if is_training_job(one) or is_kubeflow_job(one)]
    if not found:
        convert(objects[0])
    texts: list[str] = []
    notes: list[str] = []
    for one in objects:
        if one not in found:
            texts.append(to_yaml(one))
            continue
        made = convert(one)
        wrong = faults(made.job)
        if wrong:
            raise InvalidJob(wrong, source)
        notes += made.notes
        texts.append("".join(f"# {note}\n" for note in made.notes) + to_yaml(made.job))
    return texts, notes
