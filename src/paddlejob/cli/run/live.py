"""The live view of `pdj run` on a terminal."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from paddlejob.cli.humanize import lasted, restarts
from paddlejob.cli.tails import last_lines, telling
from paddlejob.cli.targets.target import JobView, PodView

ROWS = 12
LOG_LINES = 6
STYLES = {
    "Running": "green",
    "Succeeded": "bold green",
    "Completed": "bold green",
    "Failed": "bold red",
    "Interrupted": "bold red",
    "Restarting": "yellow",
    "Suspended": "yellow",
}


class LiveScreen:
    def __init__(self, console: Console | None = None) -> None:
        self._live = Live(console=console or Console(), auto_refresh=False, transient=True)
        self._live.start()
        self._drawn = 0.0

    def show(self, views: list[JobView]) -> None:
        if time.monotonic() - self._drawn >= 0.2:
            self._drawn = time.monotonic()
            self._live.update(Group(*(picture(view) for view in views)), refresh=True)

    def say(self, words: str) -> None:
        self._live.console.print(words)

    def close(self) -> None:
        self._live.stop()


def picture(view: JobView) -> RenderableType:
    """One job: where it stands, its replicas, and the last lines of the replica that has most to say."""
    parts: list[RenderableType] = [_headline(view), _replicas(view.pods)]
    speaker = telling(view)
    if speaker:
        lines = last_lines(Path(speaker.log), LOG_LINES)
        parts.append(Text(f"{speaker.role}-{speaker.index} says:", style="dim"))
        parts += [Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in lines]
    return Group(*parts)


def _headline(view: JobView) -> Text:
    job = view.job
    line = Text.assemble(
        (job.name, "bold"), "  ", (view.phase, STYLES.get(view.phase, "cyan")), f"  {job.mode}  {lasted(job)}"
    )
    line.append(restarts(job), "yellow")
    message = job.status.headline
    return line.append(f"\n{message}", "dim") if message else line


def _replicas(pods: list[PodView]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("REPLICA", "STATE", "ADDRESS", "EXIT"):
        table.add_column(title)
    shown = sorted(pods, key=lambda pod: (pod.state == "Running", pod.role, pod.index))[:ROWS]
    for pod in sorted(shown, key=lambda pod: (pod.role, pod.index)):
        code = "" if pod.exit_code is None else str(pod.exit_code)
        table.add_row(f"{pod.role}-{pod.index}", Text(pod.state, STYLES.get(pod.state, "cyan")), pod.address, code)
    if len(pods) > ROWS:
        table.add_row(f"and {len(pods) - ROWS} more", "", "", "")
    return table
