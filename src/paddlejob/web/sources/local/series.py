"""The metrics of jobs on this machine; a log is read once, in samples if it is long, then only what was added."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from paddlejob.client.targets.first_worker_file import log_files, new_lines
from paddlejob.client.targets.target import LogLine
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.logs import is_over
from paddlejob.local.state.store import JobFolder
from paddlejob.web.views.series import Collector, Series

KEPT = 60
"""Jobs whose points stay in memory."""
BUDGET_SECONDS = 0.3
LINES = 1000
WHOLE_BYTES = 4 << 20
"""A longer stretch of a log is read in samples."""
SAMPLES, BLOCK = 400, 4096


class _Log:
    """One log, read on from where reading stopped; of a long stretch only samples."""

    def __init__(self, path: Path, attempt: int) -> None:
        self._path = path
        self._attempt = attempt
        self._offset = 0
        self._samples: list[int] = []
        """Positions of blocks that are yet to be read, the last one first."""

    def read(self, collector: Collector, over: bool, ends: float) -> bool:
        """Continue until the end of the log or the end of the time; whether it was the end of the log."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return True  # Logs of old attempts are removed.
        with file:
            self._skip(file)
            while self._samples:
                file.seek(self._samples.pop())
                block = file.read(BLOCK).partition(b"\n")[2].rpartition(b"\n")[0]
                collector.add(LogLine(self._attempt, text) for text in block.decode(errors="replace").splitlines())
                if time.monotonic() > ends:
                    return False
            file.seek(self._offset)
            lines = new_lines(file, self._attempt, partial=over)
            while some := list(islice(lines, LINES)):
                collector.add(some)
                self._offset = file.tell()
                if time.monotonic() > ends:
                    return False
        return True

    def _skip(self, file: BinaryIO) -> None:
        """A line takes 25 us to parse, so 100 MB would take half a minute, and a chart shows 400 points."""
        size = file.seek(0, 2)
        ahead = size - self._offset
        if ahead <= WHOLE_BYTES:
            return
        self._samples = [self._offset + ahead * number // SAMPLES for number in reversed(range(SAMPLES))]
        file.seek(size - BLOCK)
        file.readline()
        self._offset = file.tell()


class _Reading:
    def __init__(self, folder: JobFolder, uid: str) -> None:
        job = folder.job()
        self.uid = uid
        self._collector = Collector(job.spec.progress if job else None)
        self._logs: dict[Path, _Log] = {}
        self._lock = threading.Lock()

    def update(self, folder: JobFolder) -> Series:
        """Read on for a while, so that neither a page nor Ctrl-C waits for a job with many long logs."""
        with self._lock:
            over, ends = is_over(folder), time.monotonic() + BUDGET_SECONDS
            complete = all(
                self._logs.setdefault(path, _Log(path, attempt)).read(self._collector, over, ends)
                for attempt, path in log_files(folder).items()
            )
            return self._collector.series(complete)


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
