"""The live view of jobs on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from paddlejob.cli.output.terminal import unfiltered
from paddlejob.cli.run.charts import bar, sparkline
from paddlejob.cli.run.news import News
from paddlejob.cli.run.observation import Observation, Observe
from paddlejob.client.describe.humanize import restarts, run_time, size
from paddlejob.client.describe.progress import fraction, progress_line
from paddlejob.targets.views import JobView, PodView, Usage
from paddlejob.text import printable

REFRESH_INTERVAL = 0.5
TITLE_ROWS = 3
"""The titles of the table and of the log, and the line with the cursor."""
FEWEST_REPLICAS, FEWEST_LOG_LINES = 4, 2
CHART_WIDTH, CHART_LABEL = 48, 20
"""Columns of a chart, and those kept free behind it for its numbers."""
STYLES = {
    "Running": "green",
    "Succeeded": "bold green",
    "Completed": "bold green",
    "Failed": "bold red",
    "Interrupted": "bold red",
    "Restarting": "yellow",
    "Suspended": "yellow",
}


class CleanConsole(Console):
    """Draws the text of jobs without control sequences; those of the live view itself are no text to rich."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


class LiveScreen:
    def __init__(self, observe: Observe, footer: str = "", console: Console | None = None) -> None:
        self._live = Live(
            console=console or CleanConsole(file=unfiltered(sys.stdout)), auto_refresh=False, transient=True
        )
        self._live.start()
        self._observe = observe
        self._footer = footer
        self._drawn = 0.0
        self._news = News()

    def show(self, views: list[JobView]) -> None:
        for view in views:
            for line in self._news.of(view):
                self._live.console.print(Text(f"{view.title}: {line}", "yellow"))
        if time.monotonic() - self._drawn < REFRESH_INTERVAL:
            return
        console = self._live.console
        height = (console.size.height - bool(self._footer)) // max(1, len(views))
        drawn = [render(view, self._observe(view, height), height, console.size.width) for view in views]
        self._live.update(Group(*drawn, *([Text(self._footer, "dim")] if self._footer else [])), refresh=True)
        self._drawn = time.monotonic()

    def say(self, message: str) -> None:
        self._live.console.print(Text(message))

    def close(self) -> None:
        self._live.stop()


def render(view: JobView, seen: Observation, height: int = 24, width: int = 80) -> RenderableType:
    """A job in at most `height` rows: its state and progress, its replicas, and the last lines of one of them."""
    headline, progress = _headline(view), _progress(view, seen, max(10, min(CHART_WIDTH, width - CHART_LABEL)))
    console = Console(width=width)
    rows = height - TITLE_ROWS - sum(len(text.wrap(console, width)) for text in (headline, *progress))
    replicas = max(FEWEST_REPLICAS, min(len(view.pods), rows // 2))
    left = rows - replicas - 1 if len(view.pods) > replicas else rows - len(view.pods)
    parts: list[RenderableType] = [headline, *progress, _replicas(view.pods, seen.usage, replicas)]
    if seen.log.lines:
        parts.append(Text(f"log of {seen.log.replica}:", style="dim"))
        parts += [
            Text(f"  {line}", no_wrap=True, overflow="ellipsis")
            for line in seen.log.lines[-max(FEWEST_LOG_LINES, left) :]
        ]
    return Group(*parts)


def _headline(view: JobView) -> Text:
    job = view.job
    style = STYLES.get(view.phase, "cyan")
    line = Text.assemble((view.title, "bold"), "  ", (view.phase, style), f"  {job.mode}  {run_time(job)}")
    line.append(restarts(job), "yellow")
    message = view.headline
    return line.append(f"\n{message}", "dim") if message else line


def _progress(view: JobView, seen: Observation, width: int) -> list[Text]:
    """Charts have this width."""
    lines: list[Text] = []
    if progress := progress_line(view.job):
        lines.append(Text(progress, "bold"))
    part = fraction(view.job)
    if part is not None:
        full, empty = bar(part, width)
        lines.append(Text.assemble((full, "green"), (empty, "dim"), f" {part:.0%}"))
    if len(seen.losses) > 1:
        ends = f" {seen.losses[0]:.4g} → {seen.losses[-1]:.4g}"
        lines.append(Text.assemble(("loss ", "dim"), (sparkline(seen.losses, width - 5), "cyan"), (ends, "dim")))
    return lines


def _replicas(pods: list[PodView], usage: Mapping[str, Usage], most: int) -> RenderableType:
    columns = _usage_columns(usage)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("REPLICA", "STATE", *columns, "ADDRESS", "EXIT"):
        table.add_column(title, justify="right" if title in columns else "left")
    shown = sorted(pods, key=lambda pod: (pod.state == "Running", pod.role, pod.index))[:most]
    for pod in sorted(shown, key=lambda pod: (pod.role, pod.index)):
        cells = _usage_cells(usage.get(pod.name, Usage()), columns)
        table.add_row(pod.replica, Text(pod.state, STYLES.get(pod.state, "cyan")), *cells, pod.address, pod.exit_text)
    if len(pods) > most:
        table.add_row(f"and {len(pods) - most} more")
    return table


def _usage_columns(usage: Mapping[str, Usage]) -> list[str]:
    columns = ["CPU", "MEMORY"] if usage else []
    return columns + (["GPU", "GPU MEMORY"] if any(one.gpu is not None for one in usage.values()) else [])


def _usage_cells(used: Usage, columns: list[str]) -> list[str]:
    cells = {
        "CPU": "" if used.cpu is None else f"{used.cpu:.1f}",
        "MEMORY": "" if used.memory is None else size(used.memory),
        "GPU": "" if used.gpu is None else f"{used.gpu:.0f}%",
        "GPU MEMORY": "" if used.gpu_memory is None else size(used.gpu_memory),
    }
    return [cells[column] for column in columns]
