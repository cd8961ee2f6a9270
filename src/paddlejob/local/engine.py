"""The embedded engine: runs stored jobs on this machine, through the planner, until it is closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Self

from paddlejob.api.types import Status
from paddlejob.engine.backend import Key
from paddlejob.local.backend import LocalBackend
from paddlejob.local.controller import JobController
from paddlejob.local.engine_error import log_error, report_error
from paddlejob.local.kubelet import Kubelet, enforce_memory_limits
from paddlejob.local.log_watch import LogWatch
from paddlejob.local.machine.resources import Machine, this_machine
from paddlejob.local.objects import JobObjects
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import LocalPod
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.state.changes import change_spec
from paddlejob.local.state.leftovers import remove_leftovers, remove_pods
from paddlejob.local.state.store import Document, JobFolder, Store, is_inactive
from paddlejob.locks import ProcessLock
from paddlejob.plan import names, times

WATCH_STORE_EVERY = 0.15
WATCH_MEMORY_EVERY = 0.4


class LocalEngine:
    """Use as `async with LocalEngine(store) as engine`. Closing it ends every process that it started."""

    def __init__(
        self,
        store: Store | None = None,
        machine: Machine | None = None,
        clock: Callable[[], float] = time.time,
        log: Path | None = None,
    ) -> None:
        self.store = store or Store()
        self.lost = asyncio.Event()
        """Set when the supervisor was killed, or a part of the engine failed: all containers end with it."""
        self.backend = LocalBackend(clock)
        self._clock = clock
        self._log = log
        self._scheduler = Scheduler(self.store, machine or this_machine())
        self._logs = LogWatch(self.backend, clock)
        self._controller = JobController(self.backend, self._scheduler, clock, self._forget, log, self._logs)
        self._processes = Processes(self._on_report, self.lost.set, self._fail)
        self._locks: dict[Key, ProcessLock] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        remove_leftovers(self.store)
        await self._processes.open()
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
        remove_pods(folder)
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

    async def wait_until_idle(self, key: Key) -> None:
        """Wait until the job has finished, is suspended or is deleted, and none of its processes lives."""
        await self._controller.wait_until_idle(key)

    def release_inactive_jobs(self, keys: list[Key]) -> bool:
        """Give up inactive jobs, so that another process may run them. Returns whether all of these are given up."""
        for key in keys:
            if key not in self._locks:
                continue
            if self._controller.is_abandoned(key) and self._controller.is_idle(key):
                self._give_up(key)
                continue
            folder = self.store.folder(key)
            with folder.changing():
                job = folder.job()
                if job and is_inactive(job) and self._controller.is_idle(key) and not job.metadata.deletionTimestamp:
                    self._give_up(key)
        return not any(key in self._locks for key in keys)

    def interrupt(self, message: str) -> None:
        """Suspend every job that is still active, so that it can be resumed; {job} in the message is that job."""
        for key, kubelet in list(self.backend.kubelets.items()):
            folder = kubelet.objects.folder
            job = folder.job()
            if job is None or is_inactive(job):
                continue
            text = message.format(job=names.in_command(*key))
            event = {"time": times.format(self._clock()), "reason": "Interrupted", "message": text, "warning": True}
            try:
                folder.add_event(event)
                change_spec(folder, suspend=True)
            except OSError:
                # The disk is full or gone: the request cannot be stored, but nothing may keep running either.
                self.lost.set()
            self._controller.queue.add(key)

    def _give_up(self, key: Key) -> None:
        self.backend.kubelets.pop(key).objects.write_records()
        self._locks.pop(key).release()

    def _forget(self, key: Key) -> None:
        self._locks.pop(key).release()

    def _on_report(self, name: str, report: dict[str, Any]) -> None:
        uid, _, container = name.partition("/")
        for kubelet in self.backend.kubelets.values():
            pod = kubelet.objects.find(uid)
            if pod:
                self._pass_on(kubelet, pod, container, report)
                return

    def _pass_on(self, kubelet: Kubelet, pod: LocalPod, container: str, report: dict[str, Any]) -> None:
        """An error here would leave the job in a state that no later turn repairs, so it ends this job alone."""
        try:
            kubelet.on_report(pod, container, report)
        except Exception as error:
            log_error(error, f"{kubelet.objects.key[0]}/{kubelet.objects.key[1]}")
            if "gone" in report:
                pod.alive.pop(container, None)
            self._controller.abandon(kubelet.objects.key, error)

    async def _guarded(self, part: Coroutine[Any, Any, None]) -> None:
        """Without one of its parts the engine would keep running and do nothing, so it ends, and the jobs say why."""
        try:
            await part
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log_error(error, "the engine ends")
        for kubelet in self.backend.kubelets.values():
            report_error(kubelet.objects.folder, error, self._log, self._clock(), final=False)
        self.lost.set()

    async def _watch_store(self) -> None:
        """Notice what other commands change."""
        seen: dict[Key, Any] = {}
        while True:
            for key, kubelet in list(self.backend.kubelets.items()):
                document = _document(kubelet.objects.folder)
                if seen.get(key) is not document:
                    seen[key] = document
                    self._controller.queue.add(key)
            await asyncio.sleep(WATCH_STORE_EVERY)

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(WATCH_MEMORY_EVERY)
            enforce_memory_limits(self.backend.kubelets.values())


def _document(folder: JobFolder) -> Document | Exception | None:
    """An error is a change as well: the next turn of the job reports it."""
    try:
        return folder.document()
    except Exception as error:
        return error
