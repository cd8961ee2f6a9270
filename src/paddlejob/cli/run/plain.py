"""Progress as lines, for logs and pipes: each change of phase, and now and then what the first worker says."""

from __future__ import annotations

import time
from pathlib import Path

from paddlejob.cli.tails import last_lines
from paddlejob.cli.targets.target import JobView

SPEAK_EVERY = 2.0


class PlainScreen:
    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._told: dict[str, str] = {}
        self._spoke = 0.0

    def show(self, views: list[JobView]) -> None:
        for view in views:
            headline = view.note or view.job.status.headline
            self._once(view.job.name, f"{view.phase}: {headline}" if headline else view.phase)
        if time.monotonic() - self._spoke >= SPEAK_EVERY:
            self._spoke = time.monotonic()
            for view in views:
                self._quote(view)

    def say(self, words: str) -> None:
        print(words, flush=True)

    def close(self) -> None:
        pass

    def _quote(self, view: JobView) -> None:
        worker = next((pod for pod in view.pods if pod.role == "worker" and pod.log), None)
        lines = last_lines(Path(worker.log), 1) if worker else []
        if lines:
            self._once(f"{view.job.name} worker-0", lines[-1])

    def _once(self, who: str, words: str) -> None:
        if self._told.get(who) != words:
            self._told[who] = words
            print(f"{time.monotonic() - self._begun:6.1f}s {who}: {words}", flush=True)
