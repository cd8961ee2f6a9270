"""`pdj data`: split training data into parts, and stage data where it is read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from paddlejob.data.progress import Progress, Step

app = typer.Typer(
    help="Split training data into parts, and stage data where it is read.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_SECONDS_BETWEEN_LINES = 5.0
_SPLIT_EXAMPLE = "Example: pdj data split train.txt /mnt/jobs/ctr --parts 8"
_STAGE_EXAMPLE = "Example: pdj data stage /mnt/jobs/ctr/0/data ./data"


class By(StrEnum):
    lines = "lines"
    files = "files"
    bytes = "bytes"


class Output(StrEnum):
    text = "text"
    json = "json"


Source = Annotated[str, typer.Argument(metavar="SRC", help="File, glob or directory to read: a path or a URL.")]
Dest = Annotated[str, typer.Argument(metavar="DEST", help="Directory to write to: a path or a URL.")]
Format = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing data in DEST.")]


@app.command("split", epilog=_SPLIT_EXAMPLE)
def split_(
    source: Source,
    dest: Dest,
    parts: Annotated[int, typer.Option(help="Number of parts, usually one per trainer.")],
    by: Annotated[By, typer.Option(help="Unit to split by.")] = By.lines,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Shuffle lines or files before splitting.")] = False,
    seed: Annotated[int, typer.Option(help="Seed for --shuffle; the same seed gives the same order.")] = 0,
    header: Annotated[bool, typer.Option("--header", help="Repeat the first line of each file in each part.")] = False,
    header_lines: Annotated[int, typer.Option(help="Number of header lines, if more than one.")] = 0,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Allow parts without records.")] = False,
    overwrite: Overwrite = False,
    output: Format = Output.text,
) -> None:
    """Split SRC evenly into DEST/0/data, DEST/1/data and so on.

    If it is interrupted, run the same command again to resume.
    """
    from paddlejob.data import split
    from paddlejob.data.drivers.urls import redact

    with _progress() as progress:
        manifest = split(
            source,
            dest,
            parts,
            by.value,
            shuffle,
            seed,
            header=header_lines or int(header),
            allow_empty=allow_empty,
            overwrite=overwrite,
            progress=progress,
        )
    if output is Output.json:
        _print_json({**manifest.as_json(), "kept": list(manifest.kept)})
        return
    for part in manifest.parts:
        unchanged = "  (unchanged)" if part.part in manifest.kept else ""
        typer.echo(f"{redact(dest)}/{part.part}/data  {part.records} {by.value}  {part.bytes} bytes{unchanged}")


@app.command("stage", epilog=_STAGE_EXAMPLE)
def stage_(source: Source, dest: Dest, overwrite: Overwrite = False, output: Format = Output.text) -> None:
    """Copy SRC into the directory DEST and verify checksums.

    If it is interrupted, run the same command again to resume.
    """
    from paddlejob.data import stage
    from paddlejob.data.drivers.urls import redact

    with _progress() as progress:
        staged = stage(source, dest, overwrite=overwrite, progress=progress)
    if output is Output.json:
        _print_json({**staged.as_json(), "kept": list(staged.kept)})
        return
    typer.echo(f"{redact(dest)}  {len(staged.files)} files  {staged.bytes} bytes  ({len(staged.kept)} unchanged)")


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2))


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show a bar on a terminal, and a line every few seconds elsewhere, on standard error."""
    try:
        if sys.stderr.isatty():
            with _bar() as progress:
                yield progress
        else:
            yield _plain_lines()
    except KeyboardInterrupt:
        typer.echo("Stopped. Completed work is kept; run the same command again to resume.", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich import progress
    from rich.console import Console

    from paddlejob.cli.output.terminal import unfiltered

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(file=unfiltered(sys.stderr))) as bar:
        tasks: dict[str, progress.TaskID] = {}

        def report(step: Step, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            bar.update(tasks[step], completed=done)

        yield report


def _plain_lines() -> Progress:
    last: dict[str, float] = {}

    def report(step: Step, done: int, total: int | None) -> None:
        now = monotonic()
        finished = done == total and total > 0
        if not finished and now - last.setdefault(step, now) < _SECONDS_BETWEEN_LINES:
            return
        last[step] = now
        of_all = f" of {total >> 20}" if total is not None else ""
        typer.echo(f"{step}: {done >> 20}{of_all} MiB", err=True)

    return report
