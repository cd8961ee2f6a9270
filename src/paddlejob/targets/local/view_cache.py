"""Views of jobs that are read again only when their files have changed: 500 take milliseconds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from paddlejob.engine.backend import Key
from paddlejob.local.state.runner_lock import RECORD
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.targets.views import JobView

FILES = ("job.json", "status.json", "pods.json", "events.jsonl", "run.json", RECORD)
Signature = tuple[object, ...]


class ViewCache:
    def __init__(self, store: JobStore, read: Callable[[JobFolder], JobView | None]) -> None:
        self._store = store
        self._read = read
        self._known: dict[Key, tuple[JobFolder, Signature, JobView | None]] = {}
        self._lock = threading.Lock()

    def views(self, namespace: str | None) -> list[JobView]:
        """Raises OSError if the jobs cannot be listed."""
        with self._lock:
            found = sorted(self._keys(namespace))
            self._known = {key: self._known[key] for key in found if key in self._known}
            return [view for key in found if (view := self._view(key))]

    def view(self, key: Key) -> JobView | None:
        with self._lock:
            return self._view(key)

    def _view(self, key: Key) -> JobView | None:
        folder, known, view = self._known.get(key) or (self._store.folder(key), None, None)
        if (signature := _signature(folder)) != known:
            view = self._read(folder)
            self._known[key] = (folder, signature, view)
        return view

    def _keys(self, namespace: str | None) -> Iterator[Key]:
        jobs = self._store.root / "jobs"
        for one in _directories(jobs) if namespace is None else [namespace]:
            yield from ((one, name) for name in _directories(jobs / one))


def _directories(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _signature(folder: JobFolder) -> Signature:
    """What changes whenever the view of a job does."""
    return (folder.has_runner, *(_stat(folder.path / name) for name in FILES))


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
