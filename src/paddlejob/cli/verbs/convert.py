"""`pdj convert`: another kind of job as a PaddleJob."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

FORMATS = ("yaml", "json")


def command(
    file: Annotated[str, typer.Argument(help="A file with a Job or Kubeflow's PaddleJob; - is standard input.")],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="yaml or json; or a file to write.", metavar="yaml|json|FILE"),
    ] = "yaml",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Turn a batch/v1 Job that trains, or a PaddleJob of Kubeflow, into a PaddleJob.

    What has no counterpart is named in notes: comments above the job (not in JSON), and lines on standard error. Other
    objects of the file stay as they are.

    Example: pdj convert paddle-cluster-job.yaml -o job.yaml
    """
    from paddlejob.cli.files import objects_in
    from paddlejob.errors import BadInput

    if output not in FORMATS and Path(output).exists() and not force:
        raise BadInput(f"{output}: is there already; choose another name, or --force to write over it")
    results, notes = _converted(objects_in(file), file)
    text = _as_json(results) if output == "json" or output.endswith(".json") else _as_yaml(results)
    if output in FORMATS:
        typer.echo(text, nl=False)
    else:
        _write(Path(output), text)
    if output != "yaml" or not sys.stdout.isatty():
        for note in notes:
            typer.echo(f"note: {note}", err=True)


def _converted(objects: list[dict[str, Any]], source: str) -> tuple[list[tuple[dict[str, Any], list[str]]], list[str]]:
    """Each object as it comes out with the notes about it, and all notes."""
    from paddlejob.api.convert import convert, convertible
    from paddlejob.api.validate import faults
    from paddlejob.errors import BadInput, InvalidJob

    results: list[tuple[dict[str, Any], list[str]]] = []
    try:
        if not any(convertible(one) for one in objects):
            convert(objects[0])
        made = [convert(one) if convertible(one) else None for one in objects]
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    wrong = [fault for one in made if one for fault in faults(one.job)]
    if wrong:
        raise InvalidJob(wrong, source)
    for given, one in zip(objects, made, strict=True):
        results.append((one.job, list(one.notes)) if one else (given, []))
    jobs = sum(one is not None for one in made)
    prefixed = [(f"{job['metadata']['name']}: " if jobs > 1 else "", notes) for job, notes in results if notes]
    return results, [f"{prefix}{note}" for prefix, notes in prefixed for note in notes]


def _as_yaml(results: list[tuple[dict[str, Any], list[str]]]) -> str:
    from paddlejob.cli.yaml_text import to_yaml

    return "---\n".join("".join(f"# {note}\n" for note in notes) + to_yaml(document) for document, notes in results)


def _as_json(results: list[tuple[dict[str, Any], list[str]]]) -> str:
    documents = [document for document, _ in results]
    whole = documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": documents}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    from paddlejob.errors import NotPossible

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotPossible(f"{path}: cannot be written: {error.strerror}") from None
