"""`pdj init`: a commented job file to start from."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shape(StrEnum):
    ps = "ps"
    collective = "collective"
    single = "single"
    heter = "heter"


def command(
    mode: Annotated[Shape, typer.Argument(help="How the job trains.", metavar="MODE")] = Shape.ps,
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; - is standard output.")] = "-",
    name: Annotated[str, typer.Option(help="The job's name.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a commented job file. MODE is ps, collective, single or heter.

    Example: pdj init collective -o job.yaml && pdj run job.yaml
    """
    from pathlib import Path

    from paddlejob.cli.starter_files import starting_file
    from paddlejob.errors import BadInput

    text = starting_file(mode.value, name)
    if output == "-":
        typer.echo(text, nl=False)
        return
    path = Path(output)
    if path.exists() and not force:
        raise BadInput(f"{output}: is there already; choose another name, or --force to write over it")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{output}: there is no directory {path.parent}; make it first")
    path.write_text(text)
    typer.echo(f"wrote {output}; `pdj run {output}` trains it here, `pdj submit {output}` on a cluster")
