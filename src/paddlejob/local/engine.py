"""The embedded engine: runs stored jobs on this machine, through the planner, until it is closed."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from paddlejob.api.types import Status
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.local.backend import LocalBackend
from paddlejob.local.changes import change_spec
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
RESCHEDULE_EVERY = 1.0
"""Resources may also be released by jobs of other engines."""
REST = 0.02


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
        self._reconciler = Reconciler(self.backend, clock)
        self._scheduler = Scheduler(self.store, machine or this_machine())
        self._queue: KeyedQueue[Key] = KeyedQueue(rest=REST, on_failure=_log_failure)
        self._processes = Processes(self._on_report, self.lost.set)
        self._locks: dict[Key, ProcessLock] = {}
        self._resting: dict[Key, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._processes.open()
        self._tasks = [
            asyncio.create_task(self._queue.run(self._step, concurrency=8)),
            asyncio.create_task(self._watch_store()),
            asyncio.create_task(self._watch_memory()),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._queue.stop()
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
        self._resting[key] = asyncio.Event()
        objects = JobObjects(folder, on_change=partial(self._queue.add, key))
        runtime = PodRuntime(folder, self.store, self._processes.isolated)
        self.backend.kubelets[key] = Kubelet(objects, runtime, self._processes, self._clock, self._scheduler.unbind)
        self._queue.add(key)

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
        await self._resting[key].wait()

    def release_jobs_at_rest(self, keys: list[Key]) -> bool:
        """Give up jobs at rest, so that another process may run them. Returns whether all of these are given up."""
        for key in keys:
            if key not in self._locks:
                continue
            folder = self.store.folder(key)
            with folder.changing():
                job = folder.job()
                if job and at_rest(job) and self._resting[key].is_set() and not job.metadata.deletionTimestamp:
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
            self._queue.add(key)

    async def _step(self, key: Key) -> None:
        """One turn of a job: plan and act, bind its pods, start them, and see whether it has come to rest."""
        kubelet = self.backend.kubelets.get(key)
        if kubelet is None:
            return
        document = kubelet.objects.folder.document()
        if document is None or document["metadata"].get("deletionTimestamp"):
            self._collect_garbage(kubelet)
            return
        kubelet.objects.write_records()
        self._reserve_ports(kubelet)
        wake_at = await self._reconciler.step(key)
        if wake_at is not None:
            self._queue.add_after(key, wake_at - self._clock())
        self._schedule(kubelet)
        kubelet.sync()
        self._settle(kubelet)

    def _reserve_ports(self, kubelet: Kubelet) -> None:
        """A step of its own, before the first pod is created: the port is part of a pod's manifest."""
        job = kubelet.objects.folder.job() if kubelet.objects.allocation.port is None else None
        if job is not None and not at_rest(job):
            self._scheduler.reserve_ports(kubelet.objects)

    def _schedule(self, kubelet: Kubelet) -> None:
        """Bind the pods that were just created, or that did not fit before."""
        objects = kubelet.objects
        job = objects.folder.job() if objects.unbound_pods() else None
        if job is None or at_rest(job):
            return
        self._scheduler.schedule(objects, job, overcommit=kubelet.runtime.options.overcommit)
        if objects.unbound_pods():
            self._queue.add_after(objects.key, RESCHEDULE_EVERY)

    def _settle(self, kubelet: Kubelet) -> None:
        """A job at rest gives back what it holds as soon as its last process has ended."""
        key = kubelet.objects.key
        job = kubelet.objects.folder.job()
        if job is None:
            return
        if not at_rest(job):
            self._resting[key].clear()
        elif not kubelet.has_processes:
            self._release(kubelet)
            kubelet.objects.write_records()
            self._resting[key].set()

    def _release(self, kubelet: Kubelet) -> None:
        self._scheduler.release(kubelet.objects)
        for key, other in self.backend.kubelets.items():
            if other is not kubelet and other.objects.unbound_pods():
                self._queue.add(key)

    def _collect_garbage(self, kubelet: Kubelet) -> None:
        """Remove what a deleted job owns, as the garbage collector does in a cluster."""
        kubelet.delete_all()
        if kubelet.objects.pods:
            return
        key = kubelet.objects.key
        del self.backend.kubelets[key]
        self._release(kubelet)
        kubelet.objects.folder.remove()
        self._locks.pop(key).release()
        self._resting[key].set()

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
                    self._queue.add(key)
            await asyncio.sleep(WATCH_STORE_EVERY)

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(WATCH_MEMORY_EVERY)
            enforce_memory_limits(self.backend.kubelets.values())


def _log_failure(key: Key, error: Exception) -> None:
    """To the log of the engine; the step is tried again."""
    print(f"{key[0]}/{key[1]}:", *traceback.format_exception(error))
