"""The logs and metrics of a job on this machine."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.store import JobFolder, is_inactive
from paddlejob.logs.files import blocks_of, find_logs, first_worker_logs, select_logs
from paddlejob.logs.follow import LogPiece, PageFollower, read_logs
from paddlejob.logs.selection import LogSelection
from paddlejob.plan import names
from paddlejob.targets.log_views import LogRef, LogStream

if TYPE_CHECKING:
    from paddlejob.logs.record import JobSeries
    from paddlejob.logs.search import Matches
    from paddlejob.logs.series import LoggedSample, Series

T = TypeVar("T")
PAUSE = 0.15
PAGE_PAUSE = 0.3
KEPT_SERIES = 60
"""Jobs whose points stay in memory."""


def is_over(folder: JobFolder) -> bool:
    """Whether nothing writes to the logs of the job any more."""
    try:
        job = folder.job()
    except DamagedFile:
        return not folder.has_runner
    return job is None or is_inactive(job) or not folder.has_runner


def log_stream(folder: JobFolder, selection: LogSelection, follow: bool) -> LogStream:
    """Raises BadInput if there is no such log, and none is waited for."""
    name = folder.key[1]
    found = select_logs(folder.path, name, selection)
    if not follow and not found:
        command = f"pdj get {names.in_command(*folder.key)}"
        raise BadInput(f"job {name} has no such log; list its replicas with `{command}`")
    try:
        job = folder.job()
    except DamagedFile:
        job = None
    several = selection.several(job.spec) if job else len(found) > 1
    over = (lambda: is_over(folder)) if follow else None
    return LogStream(several, _polled(lambda: read_logs(folder.path, name, selection, several, over)))


async def samples(folder: JobFolder, follow: bool) -> AsyncGenerator[list[LoggedSample], None]:
    from paddlejob.logs.record import read_samples

    name = folder.key[1]
    if not follow and not await asyncio.to_thread(first_worker_logs, folder.path, name):
        raise BadInput(f"no worker of job {name} has written a log yet; look at its replicas with `pdj get {name}`")
    job = folder.job()
    over = (lambda: is_over(folder)) if follow else None
    async for batch in _polled(lambda: read_samples(folder.path, name, job.spec.progress if job else None, over)):
        yield batch


async def _polled(begin: Callable[[], Iterator[list[T]]]) -> AsyncGenerator[list[T], None]:
    """Each batch is read in a thread; an empty one means that there is nothing new."""
    batches = await asyncio.to_thread(begin)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        if batch:
            yield batch
        else:
            await asyncio.sleep(PAUSE)


def log_refs(folder: JobFolder) -> list[LogRef]:
    found = find_logs(folder.path, folder.key[1])
    return [LogRef(log.attempt, log.replica, log.size) for log in found if not log.container]


async def follow_pieces(folder: JobFolder, selection: LogSelection) -> AsyncGenerator[list[LogPiece], None]:
    follower, over = PageFollower(folder.path, folder.key[1], selection), False
    while not over:
        over = await asyncio.to_thread(is_over, folder)
        yield await asyncio.to_thread(follower.news, over)
        await asyncio.sleep(0 if over else PAGE_PAUSE)


def search_logs(folder: JobFolder, selection: LogSelection, pattern: str) -> Matches:
    from paddlejob.logs.search import Searched, search

    chosen = select_logs(folder.path, folder.key[1], selection)
    return search([Searched(log.replica, log.attempt, blocks_of(log.path)) for log in chosen], pattern)


async def download(folder: JobFolder, selection: LogSelection) -> AsyncGenerator[bytes, None]:
    chosen = await asyncio.to_thread(select_logs, folder.path, folder.key[1], selection)
    for log in chosen:
        if len(chosen) > 1:
            yield f"==> {log.replica} <==\n".encode()
        blocks = blocks_of(log.path)
        while block := await asyncio.to_thread(next, blocks, b""):
            yield block


class SeriesCache:
    """The curves of the jobs that were looked at last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, tuple[str, JobSeries]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, folder: JobFolder) -> Series:
        from paddlejob.logs.record import JobSeries
        from paddlejob.logs.series import Series

        try:
            job = folder.job()
        except DamagedFile:
            job = None
        if job is None:
            return Series({})
        with self._lock:
            uid, series = self._known.get(folder.key) or ("", None)
            if series is None or uid != job.metadata.uid:
                series = JobSeries(folder.path, job.name, job.spec.progress)
            self._known[folder.key] = (job.metadata.uid, series)
            self._known.move_to_end(folder.key)
            while len(self._known) > KEPT_SERIES:
                self._known.popitem(last=False)
            return series.read(is_over(folder))
