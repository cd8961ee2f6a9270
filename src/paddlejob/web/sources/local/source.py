"""The jobs of this machine. Only jobs whose files have changed are read again: 500 jobs are checked in milliseconds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from paddlejob.cli.targets.local import LocalTarget
from paddlejob.cli.targets.target import JobView
from paddlejob.local.state.store import JobFolder
from paddlejob.web.logs.lines import LogQuery, LogRef, Matches, Piece
from paddlejob.web.logs.search import Searched, blocks_of, search
from paddlejob.web.sources.local.log_files import Follower, choose, find_logs, references
from paddlejob.web.sources.local.machine import MachineMeter
from paddlejob.web.sources.local.series import SeriesFiles
from paddlejob.web.sources.local.usage import ProcessMeter
from paddlejob.web.sources.source import Description
from paddlejob.web.views.machine import MachineInfo, Usage
from paddlejob.web.views.row import Key, Row, row_of
from paddlejob.web.views.series import Series

P = ParamSpec("P")
T = TypeVar("T")
FILES = ("job.json", "status.json", "pods.json", "events.jsonl", "run.json")
THREADS = 4
LOG_PAUSE = 0.3
Signature = tuple[object, ...]


class LocalSource:
    name = "local"

    def __init__(self, target: LocalTarget | None = None, namespace: str = "") -> None:
        self.target = target or LocalTarget()
        self._namespace = namespace
        self._folders: dict[Key, JobFolder] = {}
        self._seen: dict[Key, tuple[Signature, Row]] = {}
        self._meter = ProcessMeter()
        self._machine = MachineMeter(self.target.store)
        self._series = SeriesFiles()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")

    def describe(self) -> Description:
        return Description(self.name, "this machine", namespace=self._namespace)

    async def run(self) -> None:
        """Files need no connection, so there is nothing to keep."""

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Files may lie on a slow disk, and the server must answer meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    async def refresh(self) -> Mapping[Key, Row]:
        return await self.in_thread(self._refresh)

    async def view(self, namespace: str, name: str) -> JobView:
        return await self.in_thread(self.target.job, namespace, name)

    async def usage(self, view: JobView) -> dict[str, Usage]:
        return await self.in_thread(self._usage, view)

    def _usage(self, view: JobView) -> dict[str, Usage]:
        found = {pod.name: self._meter.read(pod.pid) for pod in view.pods if pod.pid}
        return {name: usage for name, usage in found.items() if usage}

    async def machine(self) -> MachineInfo:
        return await self.in_thread(self._machine.read)

    async def series(self, namespace: str, name: str) -> Series:
        folder = await self._folder(namespace, name)
        return await self.in_thread(self._series.read, folder)

    async def logs(self, namespace: str, name: str) -> list[LogRef]:
        folder = await self._folder(namespace, name)
        return await self.in_thread(lambda: references(find_logs(folder)))

    async def follow(self, namespace: str, name: str, query: LogQuery) -> AsyncIterator[list[Piece]]:
        follower = Follower(await self._folder(namespace, name), query)
        while True:
            pieces, over = await self.in_thread(follower.news)
            yield pieces
            if over:
                return
            await asyncio.sleep(LOG_PAUSE)

    async def search(self, namespace: str, name: str, query: LogQuery, pattern: str) -> Matches:
        folder = await self._folder(namespace, name)

        def run() -> Matches:
            files = choose(find_logs(folder), query)
            return search([Searched(one.replica, one.attempt, blocks_of(one.path)) for one in files], pattern)

        return await self.in_thread(run)

    async def download(self, namespace: str, name: str, query: LogQuery) -> AsyncIterator[bytes]:
        """All replicas one after the other; with several, a line before each names it."""
        folder = await self._folder(namespace, name)
        files = await self.in_thread(lambda: choose(find_logs(folder), query))
        for one in files:
            if len(files) > 1:
                yield f"==> {one.replica} <==\n".encode()
            blocks = blocks_of(one.path)
            while block := await self.in_thread(next, blocks, b""):
                yield block

    async def _folder(self, namespace: str, name: str) -> JobFolder:
        """The files of a job that exists; raises BadInput also for a name that leads out of the store."""
        await self.view(namespace, name)
        return self.target.store.folder((namespace, name))

    def _refresh(self) -> dict[Key, Row]:
        found = set(self._keys())
        for key in self._folders.keys() - found:
            self._forget(key)
        for key in found:
            folder = self._folders.setdefault(key, self.target.store.folder(key))
            self._update(key, folder)
        return {key: row for key, (_, row) in self._seen.items()}

    def _update(self, key: Key, folder: JobFolder) -> None:
        signature = _signature(folder)
        seen = self._seen.get(key)
        if seen and seen[0] == signature:
            return
        view = self.target.view(folder)
        if view is None:
            self._forget(key)
            return
        self._seen[key] = (signature, row_of(self.name, view))

    def _forget(self, key: Key) -> None:
        self._folders.pop(key, None)
        self._seen.pop(key, None)

    def _keys(self) -> Iterator[Key]:
        jobs = self.target.store.root / "jobs"
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
