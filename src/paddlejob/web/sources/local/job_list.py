"""The jobs of a state directory. Only those whose files have changed are read again: 500 take milliseconds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from paddlejob.client.targets.local import LocalTarget
from paddlejob.client.targets.target import JobView
from paddlejob.local.state.store import JobFolder
from paddlejob.web.sources.local.sparks import Sparks
from paddlejob.web.views.row import Key, Row, row_of

FILES = ("job.json", "status.json", "pods.json", "events.jsonl", "run.json")
KEPT_VIEWS = 100
WATCHED_SECONDS = 5.0
"""Somebody looks at the list if it was refreshed within this time."""
Signature = tuple[object, ...]


class JobList:
    def __init__(self, target: LocalTarget, namespace: str = "") -> None:
        self._target = target
        self._namespace = namespace
        self._folders: dict[Key, JobFolder] = {}
        self._rows: dict[Key, tuple[Signature, Row]] = {}
        self._views: dict[Key, tuple[Signature, JobView]] = {}
        self._sparks = Sparks()
        self._refreshed = 0.0
        self._lock = threading.Lock()

    def rows(self) -> dict[Key, Row]:
        """Rows of jobs that have not changed are the same objects."""
        with self._lock:
            found = set(self._keys())
            for key in self._folders.keys() - found:
                self._forget(key)
            for key in found:
                self._update(key, self._folders.setdefault(key, self._target.store.folder(key)))
            for key, (signature, row) in self._rows.items():
                if row.spark is not (spark := self._sparks.get(key)):
                    self._rows[key] = (signature, replace(row, spark=spark))
            self._refreshed = time.monotonic()
            return {key: row for key, (_, row) in self._rows.items()}

    def view(self, namespace: str, name: str) -> JobView:
        """A page asks twice a second, and all pages of a job for the same."""
        signature = _signature(self._target.store.folder((namespace, name)))
        known = self._views.get((namespace, name))
        if known and known[0] == signature:
            return known[1]
        view = self._target.job(namespace, name)
        if len(self._views) >= KEPT_VIEWS:
            self._views.clear()
        self._views[namespace, name] = (signature, view)
        return view

    def sample_losses(self) -> None:
        """While somebody looks at the list."""
        if time.monotonic() - self._refreshed > WATCHED_SECONDS:
            return
        with self._lock:
            folders = dict(self._folders)
            active = {key for key, (_, row) in self._rows.items() if row.ended is None}
        self._sparks.update(folders, active)

    def _update(self, key: Key, folder: JobFolder) -> None:
        signature = _signature(folder)
        seen = self._rows.get(key)
        if seen and seen[0] == signature:
            return
        view = self._target.view(folder)
        if view is None:
            self._forget(key)
            return
        self._rows[key] = (signature, row_of("local", view, self._sparks.get(key)))
        self._sparks.expire(key)

    def _forget(self, key: Key) -> None:
        self._folders.pop(key, None)
        self._rows.pop(key, None)
        self._sparks.forget(key)

    def _keys(self) -> Iterator[Key]:
        jobs = self._target.store.root / "jobs"
        for namespace in _directories(jobs):
            if self._namespace in ("", namespace):
                yield from ((namespace, name) for name in _directories(jobs / namespace))


def _directories(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _signature(folder: JobFolder) -> Signature:
    """What changes whenever the view of a job does."""
    stats = tuple(_stat(folder.path / name) for name in FILES)
    return (folder.has_runner, *stats)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
