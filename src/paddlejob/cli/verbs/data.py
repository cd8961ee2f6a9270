"""`pdj data`: split training data into parts, and bring data to where it is read."""

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
    help="Split training data into parts, and bring data to where it is read.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_SECONDS_BETWEEN_LINES = 5.0


class By(StrEnum):
    lines = "lines"
    files = "files"
    bytes = "bytes"


class Output(StrEnum):
    text = "text"
    json = "json"


Source = Annotated[str, typer.Argument(help="A file, a glob or a directory; a path or a URL such as s3://.")]
Dest = Annotated[str, typer.Argument(help="A directory; a path or a URL.")]
Format = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at DEST.")]


@app.command("split")
def split_(
    source: Source,
    dest: Dest,
    parts: Annotated[int, typer.Option(help="How many parts: one for each trainer.")],
    by: Annotated[By, typer.Option(help="What to count.")] = By.lines,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Put lines or files in random order first.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same order.")] = 0,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Allow parts with nothing in them.")] = False,
    overwrite: Overwrite = False,
    output: Format = Output.text,
) -> None:
    """Split SRC evenly into DEST/0/data, DEST/1/data ...; run it again after a kill and it goes on."""
    from paddlejob.data import split

    with _progress() as tell:
        made = split(
            source,
            dest,
            parts,
            by.value,
            shuffle,
            seed,
            allow_empty=allow_empty,
            overwrite=overwrite,
            progress=tell,
        )
    if output is Output.json:
        _print_json({**made.as_json(), "kept": list(made.kept)})
        return
    for part in made.parts:
        kept = "  (was there)" if part.part in made.kept else ""
        typer.echo(f"{dest}/{part.part}/data  {part.records} {by.value}  {part.bytes} bytes{kept}")


@app.command("stage")
def stage_(source: Source, dest: Dest, overwrite: Overwrite = False, output: Format = Output.text) -> None:
    """Copy SRC into the directory DEST with checksums; run it again after a kill and it goes on."""
    from paddlejob.data import stage

    with _progress() as tell:
        staged = stage(source, dest, overwrite=overwrite, progress=tell)
    if output is Output.json:
        _print_json({**staged.as_json(), "kept": list(staged.kept)})
        return
    typer.echo(f"{dest}  {len(staged.files)} files  {staged.bytes} bytes  ({len(staged.kept)} were there)")


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2))


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, a line now and then elsewhere; both on standard error."""
    try:
        if sys.stderr.isatty():
            with _bar() as tell:
                yield tell
        else:
            yield _plain_lines()
    except KeyboardInterrupt:
        typer.echo("stopped; what is done is kept: run the same command again to go on", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, progress.TaskID] = {}

        def tell(step: Step, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            bar.update(tasks[step], completed=done)

        yield tell


def _plain_lines() -> Progress:
    told: dict[str, float] = {}

    def tell(step: Step, done: int, total: int | None) -> None:
        now = monotonic()
        finished = done == total and total > 0
        if not finished and now - told.setdefault(step, now) < _SECONDS_BETWEEN_LINES:
            return
        told[step] = now
        of_all = f" of {total >> 20}" if total is not None else ""
        typer.echo(f"{step}: {done >> 20}{of_all} MiB", err=True)

    return tell
