"""Progress as lines for logs and pipes: every change of phase, and regularly the last log line of a worker."""

from __future__ import annotations

import time
from pathlib import Path

from paddlejob.cli.output.log_tail import last_lines
from paddlejob.cli.targets.target import JobView

LOG_INTERVAL = 2.0


class PlainScreen:
    def __init__(self) -> None:
        self._start = time.monotonic()
        self._printed: dict[str, str] = {}
        self._logged = 0.0

    def show(self, views: list[JobView]) -> None:
        for view in views:
            self._print_once(view.title, f"{view.phase}: {view.headline}" if view.headline else view.phase)
        if time.monotonic() - self._logged >= LOG_INTERVAL:
            self._logged = time.monotonic()
            for view in views:
                self._print_log_line(view)

    def say(self, message: str) -> None:
        print(message, flush=True)

    def close(self) -> None:
        pass

    def _print_log_line(self, view: JobView) -> None:
        worker = next((pod for pod in view.pods if pod.role == "worker" and pod.log), None)
        lines = last_lines(Path(worker.log), 1) if worker else []
        if worker and lines:
            self._print_once(f"{view.title} {worker.replica}", lines[-1])

    def _print_once(self, source: str, text: str) -> None:
        if self._printed.get(source) != text:
            self._printed[source] = text
            print(f"{time.monotonic() - self._start:6.1f}s {source}: {text}", flush=True)
