"""Progress as lines for logs and pipes: every change of phase, every event, and regularly how far training is."""

from __future__ import annotations

import time
from pathlib import Path

from paddlejob.cli.run.news import News
from paddlejob.client.describe.progress import progress_line
from paddlejob.logs.files import last_lines
from paddlejob.targets.views import JobView

LOG_INTERVAL = 2.0


class PlainScreen:
    def __init__(self) -> None:
        self._start = time.monotonic()
        self._printed: dict[str, str] = {}
        self._announced: dict[str, str] = {}
        """The last event of each job, which may say what the status says a moment later."""
        self._logged = 0.0
        self._news = News()

    def show(self, views: list[JobView]) -> None:
        for view in views:
            state = f"{view.phase}: {view.headline}" if view.headline else view.phase
            for line in self._news.of(view):
                self._print(view.title, line)
                self._announced[view.title] = line
            if self._announced.get(view.title) == state:
                self._printed[view.title] = state
            self._print_once(view.title, state)
        if time.monotonic() - self._logged >= LOG_INTERVAL:
            self._logged = time.monotonic()
            for view in views:
                self._print_progress(view)

    def say(self, message: str) -> None:
        print(message, flush=True)

    def close(self) -> None:
        pass

    def _print_progress(self, view: JobView) -> None:
        """The last line of the first worker if its log tells nothing about progress."""
        if progress := progress_line(view.job):
            self._print_once(f"{view.job.name} progress", progress, progress_line(view.job, eta=False))
            return
        worker = next((pod for pod in view.pods if pod.role == "worker" and pod.log), None)
        lines = last_lines(Path(worker.log), 1) if worker else []
        if worker and lines:
            self._print_once(f"{view.title} {worker.replica}", lines[-1])

    def _print_once(self, source: str, text: str, news: str = "") -> None:
        """Print the text if it, or that part of it, is new."""
        if self._printed.get(source) != (news or text):
            self._printed[source] = news or text
            self._print(source, text)

    def _print(self, source: str, text: str) -> None:
        print(f"{time.monotonic() - self._start:6.1f}s {source}: {text}", flush=True)
