"""Jobs on this machine. Files may lie on a slow disk, so they are read in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlejob import contract
from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.runtime.env import kill_leftovers
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.history import History
from paddlejob.local.state.store import JobFolder, JobStore, is_inactive
from paddlejob.logs.files import last_lines
from paddlejob.logs.follow import LogPiece
from paddlejob.targets.local import job_logs
from paddlejob.targets.local.job_view import stored_view
from paddlejob.targets.local.view_cache import ViewCache
from paddlejob.targets.log_views import LastLines, LastOutput, LogRef, LogStream
from paddlejob.targets.remembered import Remembered, read_remembered
from paddlejob.targets.target import DELETE_TIMEOUT, OnRetry, ignore, no_such_job, require_unfinished
from paddlejob.targets.views import DAMAGED, JobView, Usage

if TYPE_CHECKING:
    from paddlejob.logs.search import Matches
    from paddlejob.logs.selection import LogSelection
    from paddlejob.logs.series import LoggedSample, Series
    from paddlejob.targets.capacity import MachineInfo
    from paddlejob.targets.local.machine_meter import MachineMeter


class LocalTarget:
    name = "local"
    address = "this machine"
    problem = watched_namespace = ""
    default_namespace = contract.DEFAULT_NAMESPACE
    remembered_namespace = ""
    pause = 0.2

    def __init__(self, store: JobStore | None = None) -> None:
        self.store = store or JobStore()
        self._remembered = _remembered()
        self._cache: ViewCache | None = None
        self._series = job_logs.SeriesCache()

    @cached_property
    def _machine(self) -> MachineMeter:
        from paddlejob.targets.local.machine_meter import MachineMeter

        return MachineMeter(self.store)

    def flags(self, namespace: str) -> str:
        """What a command needs that would otherwise use the remembered target."""
        return (" --local" if self._remembered.cluster else "") + self._namespace_flag(namespace)

    def start_command(self, namespace: str = "") -> str:
        return f"pdj run FILE{self._namespace_flag(namespace or self.default_namespace)}"

    def _namespace_flag(self, namespace: str) -> str:
        expected = self._remembered.local_namespace or contract.DEFAULT_NAMESPACE
        return "" if namespace == expected else f" -n {namespace}"

    async def watch(self, namespace: str = "") -> None:
        self._cache = ViewCache(self.store, self._read)
        try:
            await asyncio.Event().wait()
        finally:
            self._cache = None

    async def jobs(self, namespace: str | None) -> list[JobView]:
        return await asyncio.to_thread(self._cache.views if self._cache else self._views, namespace)

    def _views(self, namespace: str | None) -> list[JobView]:
        self.require_readable()
        self.store.prune(time.time())
        views = (self._read(folder) for folder in self.store.folders() if namespace in (None, folder.key[0]))
        return [view for view in views if view]

    def require_readable(self) -> None:
        """Raise OSError if jobs or previous runs cannot be listed: they would look as if there were none."""
        for top in ("jobs", "history"):
            for namespace in _entries(self.store.root / top):
                _entries(namespace)

    def find(self, key: Key) -> JobView | None:
        """A job by its files; None if it has been removed."""
        return self._cache.view(key) if self._cache else self._read(self.store.folder(key))

    def _read(self, folder: JobFolder) -> JobView | None:
        return stored_view(folder, self.flags)

    async def job(self, namespace: str, name: str) -> JobView:
        return await asyncio.to_thread(self._job, namespace, name)

    def _job(self, namespace: str, name: str) -> JobView:
        view = self.find((namespace, name))
        if view is None:
            others = [folder.key[1] for folder in self.store.folders() if folder.key[0] == namespace]
            raise no_such_job(self, namespace, name, others)
        return view

    async def usage(self, view: JobView) -> dict[str, Usage]:
        return await asyncio.to_thread(self._machine.usage, view)

    async def capacity(self, namespace: str = "") -> MachineInfo:
        return await asyncio.to_thread(self._machine.read)

    async def last_output(self, view: JobView) -> LastOutput | None:
        return await asyncio.to_thread(_last_output, view)

    async def logs(
        self, namespace: str, name: str, selection: LogSelection, follow: bool = False, on_retry: OnRetry = ignore
    ) -> LogStream:
        return await asyncio.to_thread(
            lambda: job_logs.log_stream(self._run(namespace, name, selection.run), selection, follow)
        )

    async def samples(
        self, namespace: str, name: str, follow: bool = False
    ) -> AsyncGenerator[list[LoggedSample], None]:
        async for batch in job_logs.samples(await self._folder(namespace, name), follow):
            yield batch

    async def series(self, namespace: str, name: str, first: int = -1) -> Series:
        return await asyncio.to_thread(self._series.read, self.store.folder((namespace, name)))

    async def spark(self, namespace: str, name: str) -> tuple[float, ...] | None:
        from paddlejob.logs.record import spark

        return await asyncio.to_thread(spark, self.store.folder((namespace, name)).path)

    async def last_lines(self, view: JobView, count: int) -> LastLines:
        return await asyncio.to_thread(_last_lines, view, count)

    async def log_refs(self, namespace: str, name: str) -> list[LogRef]:
        return await asyncio.to_thread(job_logs.log_refs, await self._folder(namespace, name))

    async def log_pieces(
        self, namespace: str, name: str, selection: LogSelection
    ) -> AsyncGenerator[list[LogPiece], None]:
        async for pieces in job_logs.follow_pieces(await self._folder(namespace, name), selection):
            yield pieces

    async def search(self, namespace: str, name: str, selection: LogSelection, pattern: str) -> Matches:
        return await asyncio.to_thread(job_logs.search_logs, await self._folder(namespace, name), selection, pattern)

    async def download(self, namespace: str, name: str, selection: LogSelection) -> AsyncGenerator[bytes, None]:
        async for block in job_logs.download(await self._folder(namespace, name), selection):
            yield block

    async def _folder(self, namespace: str, name: str) -> JobFolder:
        """The files of a job that exists."""
        await self.job(namespace, name)
        return self.store.folder((namespace, name))

    def _run(self, namespace: str, name: str, number: int) -> JobFolder:
        """The files of the present run, or of a previous one."""
        folder, history = self.store.folder((namespace, name)), History(self.store.root, (namespace, name))
        if not number or (folder.path.exists() and history.number_of(folder.path) == number):
            self._job(namespace, name)
            return folder
        runs = {run.number: run.path for run in history.runs()}
        if number not in runs:
            known = ", ".join(map(str, runs)) or "none"
            raise BadInput(
                f"run {number} of job {name} is not kept; kept previous runs: {known} (`pdj list --history` lists them)"
            )
        return JobFolder(self.store.root, (namespace, name), runs[number])

    async def delete(self, namespace: str, name: str, wait: bool) -> str:
        folder = self.store.folder((namespace, name))
        if not folder.path.exists():
            self._job(namespace, name)
        History(self.store.root, (namespace, name)).forget()
        if folder.has_runner:
            _request_deletion(folder)
        deadline = time.monotonic() + DELETE_TIMEOUT
        while folder.has_runner:
            if not wait:
                return f"{name} is being deleted"
            if time.monotonic() > deadline:
                job = f"{name}{self.flags(namespace)}"
                again = f"run `pdj delete {job}` again"
                remedy = folder.take_over(again) if folder.other_host else f"check `pdj get {job}`"
                raise BadInput(f"job {name} is still stopping after {DELETE_TIMEOUT:.0f} s; {remedy}")
            await asyncio.sleep(0.05)
        if folder.path.exists():
            kill_leftovers(folder)
            await asyncio.to_thread(folder.remove)
        return f"{name} deleted"

    async def change(self, namespace: str, name: str, **fields: Any) -> None:
        """The engine that runs the job picks up the change; suspend and resume start one if none runs."""
        view = await self.job(namespace, name)
        if view.phase == DAMAGED or (view.damaged and "suspend" in fields):
            raise NotPossible(view.note)
        require_unfinished(view)
        folder = self.store.folder((namespace, name))
        if view.host and fields.get("suspend") is False and not view.job.spec.suspend:
            raise NotPossible(f"job {name} runs on {view.host}; {self._take_over(folder)}")
        change_spec(folder, **fields)
        job = folder.job()
        if "suspend" in fields and job and not is_inactive(job):
            await self._start_engine(folder)

    def _take_over(self, folder: JobFolder) -> str:
        namespace, name = folder.key
        return folder.take_over(f"continue it here with `pdj resume {name}{self.flags(namespace)}`")

    async def _start_engine(self, folder: JobFolder) -> None:
        """Unless the engine that holds the lock has noticed the change: one that is ending does not."""
        from paddlejob.local.runner import spawn_detached

        lock, deadline = folder.runner_lock(), time.monotonic() + DELETE_TIMEOUT
        while not lock.acquire():
            job = folder.job()
            if job is None or job.status.observedGeneration == job.metadata.generation:
                return
            if time.monotonic() > deadline:
                remedy = self._take_over(folder) if folder.other_host else "try again later"
                raise NotPossible(f"job {job.name} is still stopping after {DELETE_TIMEOUT:.0f} s; {remedy}")
            await asyncio.sleep(0.05)
        kill_leftovers(folder)
        spawn_detached(self.store, [(folder, lock)])


def _last_output(view: JobView) -> LastOutput | None:
    logs = [(pod, Path(pod.log).stat()) for pod in view.pods if pod.log and Path(pod.log).is_file()]
    written = [LastOutput(pod.replica, stat.st_mtime) for pod, stat in logs if stat.st_size]
    return max(written, key=lambda output: output.time, default=None)


def _last_lines(view: JobView, count: int) -> LastLines:
    quoted = next((pod for pod in view.quoted if pod.log and Path(pod.log).exists()), None)
    if not quoted or not count:
        return LastLines()
    lines = last_lines(Path(quoted.log), count, 8192 + 256 * count, view.hides_framework(quoted))
    return LastLines(quoted.replica, tuple(lines))


def _remembered() -> Remembered:
    """A file that is damaged stops no job: the commands that choose a target report it."""
    try:
        return read_remembered()
    except BadInput:
        return Remembered()


def _entries(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _request_deletion(folder: JobFolder) -> None:
    """Ask the engine of the job to remove it. Without a document it does the same, so a damaged one is removed."""
    try:
        mark_for_deletion(folder, time.time())
    except DamagedFile as error:
        error.path.unlink(missing_ok=True)
