"""The embedded engine: runs stored jobs on this machine, through the planner, until it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Self

from paddlejob.api.types import Status
from paddlejob.engine.backend import Key
from paddlejob.local.backend import LocalBackend
from paddlejob.local.clock import steady_clock
from paddlejob.local.controller import JobController
from paddlejob.local.engine_error import log_error, report_error
from paddlejob.local.job import JobRegistry, LocalJob
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.log_watch import LogWatch
from paddlejob.local.machine.resources import Machine, this_machine
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.state.changes import change_spec
from paddlejob.local.state.leftovers import remove_leftovers, remove_pods
from paddlejob.local.state.runner_lock import RunnerLock
from paddlejob.local.state.store import Document, JobFolder, JobStore, is_inactive
from paddlejob.plan import names

WATCH_STORE_EVERY = 0.15
WATCH_MEMORY_EVERY = 0.4


class LocalEngine:
    """Use as `async with LocalEngine(store) as engine`. Closing it ends every process that it started."""

    def __init__(
        self,
        store: JobStore | None = None,
        machine: Machine | None = None,
        clock: Callable[[], float] | None = None,
        log: Path | None = None,
    ) -> None:
        self.store = store or JobStore()
        self.lost = asyncio.Event()
        """Set when the supervisor was killed, or a part of the engine failed: all containers end with it."""
        self.jobs = JobRegistry()
        self._clock = clock = clock or steady_clock()
        self._log = log
        self.kubelet = Kubelet(self.store, Processes(self.lost.set, self._fail), clock)
        self.backend = LocalBackend(self.jobs, self.kubelet, clock)
        scheduler = Scheduler(self.store, machine or this_machine())
        self._logs = LogWatch(self.jobs, clock)
        self._controller = JobController(self.jobs, self.backend, scheduler, self.kubelet, self._logs, clock, log)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        remove_leftovers(self.store)
        await self.kubelet.open()
        self._tasks = [
            asyncio.create_task(self._guarded(self._controller.run())),
            asyncio.create_task(self._guarded(self._watch_store())),
            asyncio.create_task(self._guarded(self._watch_memory())),
            asyncio.create_task(self._guarded(self._logs.run(self._controller.queue.add))),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._controller.queue.stop()
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.kubelet.close()
        for job in self.jobs:
            job.write_records()
            job.allocation.clear()
            job.release()

    async def submit(self, document: Document, options: RunOptions | None = None) -> Key:
        """Store a new job and run it."""
        folder, lock = self.store.begin(document, options or RunOptions(), self._clock())
        self.adopt(folder, lock)
        return folder.key

    def adopt(self, folder: JobFolder, lock: RunnerLock) -> None:
        """Run a stored job; `lock` shows other processes that it has a runner."""
        remove_pods(folder)
        self.jobs.add(LocalJob(folder, lock, on_change=partial(self._controller.queue.add, folder.key)))
        self._controller.queue.add(folder.key)

    def keep_finished_jobs(self) -> None:
        """Whatever their ttlSecondsAfterFinished; they are removed later, when jobs are listed."""
        self.backend.keep_finished = True

    def status(self, key: Key) -> Status | None:
        job = self.store.folder(key).job()
        return job.status if job else None

    async def wait_until_idle(self, key: Key) -> None:
        """Wait until the job has finished, is suspended or is deleted, and none of its processes lives."""
        job = self.jobs.get(key)
        if job:
            await job.idle.wait()

    def release_inactive_jobs(self, keys: list[Key]) -> bool:
        """Give up inactive jobs, so that another process may run them. Returns whether all of these are given up."""
        for job in [job for key in keys if (job := self.jobs.get(key)) and job.idle.is_set()]:
            if job.error:
                self._give_up(job)
                continue
            with job.folder.changing():
                stored = job.folder.job()
                if stored and is_inactive(stored) and not stored.metadata.deletionTimestamp:
                    self._give_up(job)
        return not any(self.jobs.get(key) for key in keys)

    def _give_up(self, job: LocalJob) -> None:
        job.write_records()
        self.kubelet.forget(job)
        self.jobs.remove(job)

    def interrupt(self, message: str) -> None:
        """Suspend every job that is still active, so that it can be resumed; {job} in the message is that job."""
        for job in self.jobs:
            stored = job.folder.job()
            if stored is None or is_inactive(stored):
                continue
            text = message.format(job=names.in_command(*job.key))
            try:
                job.folder.add_event(self._clock(), "Interrupted", text, warning=True)
                change_spec(job.folder, suspend=True)
            except OSError:
                # The disk is full or gone: the request cannot be stored, but nothing may keep running either.
                self.lost.set()
            self._controller.queue.add(job.key)

    async def _guarded(self, part: Coroutine[Any, Any, None]) -> None:
        """Without one of its parts the engine would keep running and do nothing, so it ends, and the jobs say why."""
        try:
            await part
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log_error(error, "the engine ends")
        for job in self.jobs:
            report_error(job.folder, error, self._log, self._clock(), final=False)
        self.lost.set()

    async def _watch_store(self) -> None:
        """Notice what other commands change."""
        seen: dict[Key, Any] = {}
        while True:
            for job in self.jobs:
                document = _document(job.folder)
                if seen.get(job.key) is not document:
                    seen[job.key] = document
                    self._controller.queue.add(job.key)
            await asyncio.sleep(WATCH_STORE_EVERY)

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(WATCH_MEMORY_EVERY)
            self.kubelet.enforce_memory_limits()


def _document(folder: JobFolder) -> Document | Exception | None:
    """An error is a change as well: the next turn of the job reports it."""
    try:
        return folder.document()
    except Exception as error:
        return error
