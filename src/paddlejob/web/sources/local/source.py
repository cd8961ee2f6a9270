"""The jobs of this machine, as coroutines over files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from paddlejob.client.targets.local import LocalTarget
from paddlejob.client.targets.target import JobView
from paddlejob.client.watch.machine import replica_usage
from paddlejob.client.watch.usage import ProcessMeter, Usage
from paddlejob.local.state.store import JobFolder
from paddlejob.web.logs.lines import LogQuery, LogRef, Matches, Piece
from paddlejob.web.logs.search import Searched, blocks_of, search
from paddlejob.web.sources.local.gpus import GpuTable
from paddlejob.web.sources.local.job_list import JobList
from paddlejob.web.sources.local.log_files import Follower, choose, find_logs, references
from paddlejob.web.sources.local.machine import MachineMeter
from paddlejob.web.sources.local.series import SeriesFiles
from paddlejob.web.sources.source import Description
from paddlejob.web.views.machine import MachineInfo
from paddlejob.web.views.row import Key, Row
from paddlejob.web.views.series import Series

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 4
LOG_PAUSE = 0.3
SPARK_PAUSE = 0.3


class LocalSource:
    name = "local"

    def __init__(self, target: LocalTarget | None = None, namespace: str = "") -> None:
        self.target = target or LocalTarget()
        self._namespace = namespace
        self._jobs = JobList(self.target, namespace)
        self._meter = ProcessMeter()
        self._gpus = GpuTable()
        self._machine = MachineMeter(self.target.store, self._gpus)
        self._series = SeriesFiles()
        self._rows: Mapping[Key, Row] = {}
        self._error = ""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")

    def describe(self) -> Description:
        return Description(self.name, "this machine", self._error, self._namespace)

    def flags(self, namespace: str) -> list[str]:
        return ["--local", "-n", namespace]

    async def run(self) -> None:
        """Read all jobs once, so that the first page does not wait for it; then sample logs while a page is open."""
        await self.refresh()
        while True:
            await self.in_thread(self._jobs.sample_losses)
            await asyncio.sleep(SPARK_PAUSE)

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Files may lie on a slow disk, and the server must answer meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    async def refresh(self) -> Mapping[Key, Row]:
        """While the files cannot be read, the jobs as they were last seen."""
        try:
            self._rows = await self.in_thread(self._jobs.rows)
            self._error = ""
        except OSError as error:
            self._error = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return self._rows

    async def view(self, namespace: str, name: str) -> JobView:
        return await self.in_thread(self._jobs.view, namespace, name)

    async def usage(self, view: JobView) -> dict[str, Usage]:
        return await self.in_thread(replica_usage, self.target.store, view, self._meter, self._gpus)

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
