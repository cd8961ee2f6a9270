"""The metrics of jobs on this machine; a log is read once, then only what was added."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from paddlejob.client.targets.first_worker_file import log_files, new_lines
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.logs import is_over
from paddlejob.local.state.store import JobFolder
from paddlejob.web.views.series import Collector, Series

KEPT = 60
"""Jobs whose points stay in memory."""


class _Reading:
    def __init__(self, folder: JobFolder, uid: str) -> None:
        job = folder.job()
        self.uid = uid
        self._collector = Collector(job.spec.progress if job else None)
        self._offsets: dict[tuple[int, Path], int] = {}
        self._lock = threading.Lock()

    def update(self, folder: JobFolder) -> Series:
        with self._lock:
            over = is_over(folder)
            for attempt, path in log_files(folder).items():
                # Logs of old attempts are removed.
                with suppress(FileNotFoundError), path.open("rb") as file:
                    file.seek(self._offsets.get((attempt, path), 0))
                    self._collector.add(new_lines(file, attempt, partial=over))
                    self._offsets[attempt, path] = file.tell()
            return self._collector.series()


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
