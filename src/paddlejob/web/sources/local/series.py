"""The metrics of jobs on this machine; a log is read once, then only what was added."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from itertools import islice
from pathlib import Path

from paddlejob.cli.targets.first_worker_file import log_files, new_lines
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.logs import is_over
from paddlejob.local.state.store import JobFolder
from paddlejob.web.views.series import Collector, Series

KEPT = 60
"""Jobs whose points stay in memory."""
BUDGET_SECONDS = 0.3
LINES = 1000


class _Reading:
    def __init__(self, folder: JobFolder, uid: str) -> None:
        job = folder.job()
        self.uid = uid
        self._collector = Collector(job.spec.progress if job else None)
        self._offsets: dict[tuple[int, Path], int] = {}
        self._lock = threading.Lock()

    def update(self, folder: JobFolder) -> Series:
        """Read on for a while; a log of 100 MB takes ten seconds, and neither a page nor Ctrl-C waits for that."""
        with self._lock:
            over, ends = is_over(folder), time.monotonic() + BUDGET_SECONDS
            complete = all(self._read(path, attempt, over, ends) for attempt, path in log_files(folder).items())
            return self._collector.series(complete)

    def _read(self, path: Path, attempt: int, over: bool, ends: float) -> bool:
        """Continue with a log; whether its end was reached in time."""
        with path.open("rb") as file:
            file.seek(self._offsets.get((attempt, path), 0))
            lines = new_lines(file, attempt, partial=over)
            while some := list(islice(lines, LINES)):
                self._collector.add(some)
                self._offsets[attempt, path] = file.tell()
                if time.monotonic() > ends:
                    return False
        return True


class SeriesFiles:
    """The jobs that were looked at last."""

    def __init__(self) -> None:
        self._readings: OrderedDict[tuple[str, str], _Reading] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, folder: JobFolder) -> Series:
        try:
            document = folder.document() or {}
        except DamagedFile:
            return Series({})
        uid = document.get("metadata", {}).get("uid", "")
        with self._lock:
            reading = self._readings.get(folder.key)
            if reading is None or reading.uid != uid:
                reading = self._readings[folder.key] = _Reading(folder, uid)
            self._readings.move_to_end(folder.key)
            while len(self._readings) > KEPT:
                self._readings.popitem(last=False)
        return reading.update(folder)
