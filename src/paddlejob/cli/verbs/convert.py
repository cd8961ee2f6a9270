"""`pdj convert`: other kinds of jobs as PaddleJobs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from paddlejob.cli.options import Force

FORMATS = ("yaml", "json")


@dataclass(frozen=True)
class Converted:
    document: dict[str, Any]
    notes: tuple[str, ...] = ()
    copied: bool = False
    """The object is not a job and stays unchanged."""


def command(
    file: Annotated[
        str, typer.Argument(help="File with a Job or a Kubeflow PaddleJob; - reads standard input.", metavar="FILE")
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Output format, or a file to write; - prints YAML.", metavar="yaml|json|FILE"
        ),
    ] = "yaml",
    force: Force = False,
) -> None:
    """Convert a batch/v1 training Job or a Kubeflow PaddleJob to a PaddleJob.

    Fields without a counterpart are reported on standard error, and in YAML as comments above the job. Other objects
    in the file are copied unchanged.

    \b
    Example:
      pdj convert paddle-cluster-job.yaml -o job.yaml
    """
    from paddlejob.client.files import check_new_file, objects_in, write_file

    path = None if output in (*FORMATS, "-") else check_new_file(output, force)
    results = _convert(objects_in(file), file)
    text = _as_json(results) if output == "json" or output.endswith(".json") else _as_yaml(results)
    if path:
        write_file(path, text)
    else:
        typer.echo(text, nl=False)
    if output not in ("yaml", "-") or not sys.stdout.isatty():
        for note in _notes(results):
            typer.echo(f"note: {note}", err=True)


def _convert(objects: list[dict[str, Any]], source: str) -> list[Converted]:
    """Every object, converted where possible; raises BadInput if that is none."""
    from paddlejob.api.convert import convert, convertible
    from paddlejob.client.start.check import check
    from paddlejob.client.start.load import Loaded
    from paddlejob.errors import BadInput

    try:
        if not any(convertible(obj) for obj in objects):
            convert(objects[0])
        conversions = [convert(obj) if convertible(obj) else None for obj in objects]
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    check([Loaded(source, (conversion.job,)) for conversion in conversions if conversion], cluster=None)
    return [
        Converted(conversion.job, tuple(conversion.notes)) if conversion else Converted(obj, copied=True)
        for obj, conversion in zip(objects, conversions, strict=True)
    ]


def _notes(results: list[Converted]) -> list[str]:
    """All notes; those of several jobs start with the name of their job."""
    several = sum(not result.copied for result in results) > 1
    return [
        f"{result.document['metadata']['name']}: {note}" if several else note
        for result in results
        for note in result.notes
    ]


def _as_yaml(results: list[Converted]) -> str:
    from paddlejob.client.describe.formats import to_yaml

    return "---\n".join(
        "".join(f"# {note}\n" for note in result.notes) + to_yaml(result.document) for result in results
    )


def _as_json(results: list[Converted]) -> str:
    from paddlejob.client.describe.formats import as_list, to_json

    documents = [result.document for result in results]
    return to_json(documents[0] if len(documents) == 1 else as_list(documents))
