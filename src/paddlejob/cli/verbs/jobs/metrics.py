"""`pdj metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace, SeriesOutput

if TYPE_CHECKING:
    from paddlejob.api.types import ProgressSpec
    from paddlejob.logs.series import LoggedSample

HOW_TO = (
    "Lines such as `step 10/500 loss=0.25`, `epoch 3/10 loss: 0.25`, JSON, tqdm bars and the logs of Paddle's toolkits "
    "are recognized; for another format, set spec.progress.pattern, for example "
    r"'round (?P<step>\d+) error (?P<loss>\S+)'"
)


def command(
    name: JobName,
    output: Annotated[
        SeriesOutput, typer.Option("--output", "-o", help="Output format: table, csv or json.", metavar="FORMAT")
    ] = SeriesOutput.table,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new values as CSV or JSON lines until the job ends.")
    ] = False,
    namespace: Namespace = "",
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Print the steps, losses and other metrics that the first worker has logged, in all attempts.

    Other metrics than loss, learning rate and samples per second are named in spec.progress.metrics.

    \b
    Example:
      pdj metrics wide-and-deep -o csv > metrics.csv
    """
    from paddlejob.errors import BadInput
    from paddlejob.logs.series import columns_of
    from paddlejob.targets.choose import choose_target

    if follow and output is SeriesOutput.table:
        raise BadInput("--follow cannot be used with a table; add -o csv or -o json")
    target = choose_target(cluster, context)
    namespace = namespace or target.default_namespace
    progress = target.job(namespace, name).job.spec.progress
    rows = target.samples(namespace, name, follow)
    try:
        first = next(rows)
    except StopIteration:
        raise _nothing_found(name, progress) from None
    for text in _texts(first, rows, columns_of(progress), output, follow):
        typer.echo(text, nl=False)


def _texts(
    first: LoggedSample, rows: Iterator[LoggedSample], names: list[str], output: SeriesOutput, follow: bool
) -> Iterator[str]:
    from paddlejob.cli.output.series import as_table, csv_line, json_line, json_object
    from paddlejob.client.describe.formats import to_json

    if output is SeriesOutput.table:
        yield as_table([first, *rows], names) + "\n"
    elif output is SeriesOutput.csv:
        yield csv_line(names)
        yield csv_line([first.cell(name) for name in names])
        yield from (csv_line([row.cell(name) for name in names]) for row in rows)
    elif follow:
        yield json_line(first, names)
        yield from (json_line(row, names) for row in rows)
    else:
        yield to_json([json_object(row, names) for row in (first, *rows)])


def _nothing_found(name: str, progress: ProgressSpec | None) -> Exception:
    from paddlejob.api.progress_pattern import BadPattern, compile_pattern
    from paddlejob.errors import BadInput

    if progress is None or progress.pattern is None:
        return BadInput(f"the log of job {name} shows no progress. {HOW_TO}")
    try:
        compile_pattern(progress.pattern)
    except BadPattern as error:
        return BadInput(f"spec.progress.pattern of job {name}: {error}")
    return BadInput(f"spec.progress.pattern of job {name} matches no line of its log; change or remove it")
