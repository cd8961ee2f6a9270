"""The live view of `pdj run` on a terminal."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from paddlejob.cli.run.news import News
from paddlejob.client.describe.humanize import restarts, run_time
from paddlejob.client.describe.log_tail import last_lines
from paddlejob.client.describe.progress import progress_line
from paddlejob.client.targets.target import JobView, PodView

REFRESH_INTERVAL = 0.2
MAX_ROWS = 12
LOG_LINES = 6
LOG_LINES_BELOW_PROGRESS = 2
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
        self._news = News()

    def show(self, views: list[JobView]) -> None:
        for view in views:
            for line in self._news.of(view):
                self._live.console.print(Text(f"{view.title}: {line}", "yellow"))
        if time.monotonic() - self._drawn >= REFRESH_INTERVAL:
            self._drawn = time.monotonic()
            self._live.update(Group(*(render(view) for view in views)), refresh=True)

    def say(self, message: str) -> None:
        self._live.console.print(message)

    def close(self) -> None:
        self._live.stop()


def render(view: JobView) -> RenderableType:
    """The state of a job, its replicas, and the last log lines of the most interesting one."""
    progress = progress_line(view.job)
    parts: list[RenderableType] = [_headline(view), *([Text(progress, "bold")] if progress else [])]
    parts.append(_replicas(view.pods))
    if pod := _pod_to_quote(view):
        quiet = bool(progress) and pod.state != "Failed"
        lines = last_lines(Path(pod.log), LOG_LINES_BELOW_PROGRESS if quiet else LOG_LINES, without_noise=quiet)
        parts.append(Text(f"log of {pod.replica}:", style="dim"))
        parts += [Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in lines]
    return Group(*parts)


def _pod_to_quote(view: JobView) -> PodView | None:
    """The replica that the status names, else one that failed, else the first worker."""

    def rank(pod: PodView) -> tuple[bool, bool, bool, int]:
        return not view.names(pod), pod.state != "Failed", pod.role != "worker", pod.index

    return next((pod for pod in sorted(view.pods, key=rank) if pod.log and Path(pod.log).exists()), None)


def _headline(view: JobView) -> Text:
    job = view.job
    style = STYLES.get(view.phase, "cyan")
    line = Text.assemble((view.title, "bold"), "  ", (view.phase, style), f"  {job.mode}  {run_time(job)}")
    line.append(restarts(job), "yellow")
    message = job.status.headline
    return line.append(f"\n{message}", "dim") if message else line


def _replicas(pods: list[PodView]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("REPLICA", "STATE", "ADDRESS", "EXIT"):
        table.add_column(title)
    shown = sorted(pods, key=lambda pod: (pod.state == "Running", pod.role, pod.index))[:MAX_ROWS]
    for pod in sorted(shown, key=lambda pod: (pod.role, pod.index)):
        table.add_row(pod.replica, Text(pod.state, STYLES.get(pod.state, "cyan")), pod.address, pod.exit_text)
    if len(pods) > MAX_ROWS:
        table.add_row(f"and {len(pods) - MAX_ROWS} more", "", "", "")
    return table
