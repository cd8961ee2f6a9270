"""The embedded engine: runs stored jobs on this machine, through the planner, until it is closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from paddlejob.api.types import Status
from paddlejob.engine.backend import Key
from paddlejob.local.backend import LocalBackend
from paddlejob.local.changes import change_spec
from paddlejob.local.controller import JobController
from paddlejob.local.kubelet import Kubelet, enforce_memory_limits
from paddlejob.local.machine.resources import Machine, this_machine
from paddlejob.local.objects import JobObjects
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.store import Document, JobFolder, Store, at_rest
from paddlejob.locks import ProcessLock
from paddlejob.plan import times

WATCH_STORE_EVERY = 0.15
WATCH_MEMORY_EVERY = 0.4


class LocalEngine:
    """Use as `async with LocalEngine(store) as engine`. Closing it ends every process that it started."""

    def __init__(
        self, store: Store | None = None, machine: Machine | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store or Store()
        self.lost = asyncio.Event()
        """Set when the supervisor was killed: all containers ended with it."""
        self.backend = LocalBackend(clock)
        self._clock = clock
        self._scheduler = Scheduler(self.store, machine or this_machine())
        self._controller = JobController(self.backend, self._scheduler, clock, self._forget)
        self._processes = Processes(self._on_report, self.lost.set)
        self._locks: dict[Key, ProcessLock] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._processes.open()
        self._tasks = [
            asyncio.create_task(self._controller.run()),
            asyncio.create_task(self._watch_store()),
            asyncio.create_task(self._watch_memory()),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._controller.queue.stop()
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._processes.close()
        self._scheduler.close()
        for kubelet in self.backend.kubelets.values():
            kubelet.objects.write_records()
            kubelet.objects.allocation.clear()
        for lock in self._locks.values():
            lock.release()

    async def submit(self, document: Document, options: RunOptions | None = None) -> Key:
        """Store a new job and run it."""
        folder, lock = self.store.begin(document, options or RunOptions(), self._clock())
        self.adopt(folder, lock)
        return folder.key

    def adopt(self, folder: JobFolder, lock: ProcessLock) -> None:
        """Run a stored job; `lock` shows other processes that it has a runner."""
        key = folder.key
        self._locks[key] = lock
        objects = JobObjects(folder, on_change=partial(self._controller.queue.add, key))
        runtime = PodRuntime(folder, self.store, self._processes.isolated)
        kubelet = Kubelet(objects, runtime, self._processes, self._clock, self._scheduler.unbind)
        self._controller.add(key, kubelet)

    def keep_finished_jobs(self) -> None:
        """Whatever their ttlSecondsAfterFinished; they are removed later, when jobs are listed."""
        self.backend.keep_finished = True

    def status(self, key: Key) -> Status | None:
        job = self.store.folder(key).job()
        return job.status if job else None

    def pods(self, key: Key) -> dict[str, str]:
        """Names and uids of the pods that exist and are not being deleted."""
        kubelet = self.backend.kubelets.get(key)
        found = [pod.seen for pod in kubelet.objects.pods.values()] if kubelet else []
        return {pod.name: pod.uid for pod in found if not pod.deleting}

    async def rest(self, key: Key) -> None:
        """Wait until the job has finished, is suspended or is deleted, and none of its processes lives."""
        await self._controller.rest(key)

    def release_jobs_at_rest(self, keys: list[Key]) -> bool:
        """Give up jobs at rest, so that another process may run them. Returns whether all of these are given up."""
        for key in keys:
            if key not in self._locks:
                continue
            folder = self.store.folder(key)
            with folder.changing():
                job = folder.job()
                if job and at_rest(job) and self._controller.is_resting(key) and not job.metadata.deletionTimestamp:
                    self.backend.kubelets.pop(key).objects.write_records()
                    self._locks.pop(key).release()
        return not any(key in self._locks for key in keys)

    def interrupt(self, message: str) -> None:
        """Suspend every job that is not at rest, so that it can be resumed."""
        for key, kubelet in list(self.backend.kubelets.items()):
            folder = kubelet.objects.folder
            job = folder.job()
            if job is None or at_rest(job):
                continue
            event = {"time": times.format(self._clock()), "reason": "Interrupted", "message": message, "warning": True}
            try:
                folder.add_event(event)
                change_spec(folder, suspend=True)
            except OSError:
                # The disk is full or gone: the request cannot be stored, but nothing may keep running either.
                self.lost.set()
            self._controller.queue.add(key)

    def _forget(self, key: Key) -> None:
        self._locks.pop(key).release()

    def _on_report(self, name: str, report: dict[str, Any]) -> None:
        uid, _, container = name.partition("/")
        for kubelet in self.backend.kubelets.values():
            pod = kubelet.objects.find(uid)
            if pod:
                kubelet.on_report(pod, container, report)
                return

    async def _watch_store(self) -> None:
        """Notice what other commands change."""
        seen: dict[Key, Any] = {}
        while True:
            for key, kubelet in list(self.backend.kubelets.items()):
                document = kubelet.objects.folder.document()
                if seen.get(key) is not document:
                    seen[key] = document
                    self._controller.queue.add(key)
            await asyncio.sleep(WATCH_STORE_EVERY)

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(WATCH_MEMORY_EVERY)
            enforce_memory_limits(self.backend.kubelets.values())
