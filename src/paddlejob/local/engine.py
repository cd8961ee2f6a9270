"""The embedded engine: runs jobs of the store on this machine, through the planner, until it is closed."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self

from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.local.backend import LocalBackend
from paddlejob.local.changes import change_spec
from paddlejob.local.files import LifeLock
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.machine.addresses import Addresses
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.machine.proc import memory_below
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine, this_machine
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.store import Document, JobFolder, Store, at_rest
from paddlejob.plan import times

LOOK_AT_STORE = 0.15
LOOK_AT_MEMORY = 0.4
LOOK_AT_PLACES = 1.0
REST = 0.02


class LocalEngine:
    """Use as `async with LocalEngine(store) as engine`. Closing it ends every process that it started."""

    def __init__(
        self, store: Store | None = None, machine: Machine | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store or Store()
        self.lost = asyncio.Event()
        """Set when the process that runs the containers was killed: all of them are gone."""
        self._machine = machine or this_machine()
        self._clock = clock
        self._backend = LocalBackend(clock)
        self._reconciler = Reconciler(self._backend, clock)
        self._queue: KeyedQueue[Key] = KeyedQueue(rest=REST, on_failure=_complain)
        self._processes = Processes(self._hear, self.lost.set)
        self._addresses = Addresses()
        self._claims = Reservations(self.store, self._machine)
        self._locks: dict[Key, LifeLock] = {}
        self._resting: dict[Key, asyncio.Event] = {}
        self._written: dict[Key, list[dict[str, Any]]] = {}
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
        self._addresses.close()
        self._write_records()
        for kubelet in self._backend.kubelets.values():
            kubelet.share.close()
        for lock in self._locks.values():
            lock.release()

    async def submit(self, document: Document, options: RunOptions | None = None) -> Key:
        """Write down a new job and run it."""
        folder, lock = self.store.begin(document, options or RunOptions(), self._clock())
        self.adopt(folder, lock)
        return folder.key

    def adopt(self, folder: JobFolder, lock: LifeLock) -> None:
        """Run a job that is written down; `lock` tells others that we do."""
        key = folder.key
        self._locks[key] = lock
        self._resting[key] = asyncio.Event()
        outfit = PodRuntime(folder, self.store, self._processes.isolated)
        share = Allocation(folder, self._machine, self._addresses, self._claims, outfit.options.overcommit)
        changed = partial(self._queue.add, key)
        self._backend.kubelets[key] = Kubelet(folder, share, outfit, self._processes, self._clock, changed)
        self._queue.add(key)

    def keep_ended_jobs(self) -> None:
        """Whatever their ttlSecondsAfterFinished; they are removed later, when jobs are listed."""
        self._backend.keeps_ended = True

    def status(self, key: Key) -> Status | None:
        job = self.store.folder(key).job()
        return job.status if job else None

    def pods(self, key: Key) -> dict[str, str]:
        """Names and uids of the pods that exist and are not being deleted."""
        kubelet = self._backend.kubelets.get(key)
        found = [pod.seen for pod in kubelet.pods.values()] if kubelet else []
        return {pod.name: pod.uid for pod in found if not pod.deleting}

    async def rest(self, key: Key) -> None:
        """Wait until the job has ended, is suspended or is gone, and none of its processes lives."""
        await self._resting[key].wait()

    def let_go_of_resting(self, keys: list[Key]) -> bool:
        """Give up jobs that rest, so that another process may run them. Whether all of these are given up."""
        for key in keys:
            if key not in self._locks:
                continue
            folder = self.store.folder(key)
            with folder.changing():
                job = folder.job()
                if job and at_rest(job) and self._resting[key].is_set() and not job.metadata.deletionTimestamp:
                    self._write_records()
                    self._locks.pop(key).release()
                    self._backend.kubelets.pop(key)
        return not any(key in self._locks for key in keys)

    def interrupt(self, why: str) -> None:
        """Suspend every job that is under way, so that it can be resumed."""
        for kubelet in list(self._backend.kubelets.values()):
            job = kubelet.folder.job()
            if job is None or at_rest(job):
                continue
            event = {"time": times.format(self._clock()), "reason": "Interrupted", "message": why, "warning": True}
            try:
                kubelet.folder.add_event(event)
                change_spec(kubelet.folder, suspend=True)
            except OSError:
                # The disk is full or gone: nothing can be written down any more, but nothing may go on either.
                self.lost.set()
            self._queue.add(kubelet.key)

    async def _step(self, key: Key) -> None:
        kubelet = self._backend.kubelets.get(key)
        if kubelet is None:
            return
        document = kubelet.folder.document()
        if document is None or document["metadata"].get("deletionTimestamp"):
            self._bury(kubelet)
            return
        self._write_records()
        wake_at = await self._reconciler.step(key)
        if wake_at is not None:
            self._queue.add_after(key, wake_at - self._clock())
        if any(pod.seen.reason == "Unschedulable" for pod in kubelet.pods.values()):
            self._queue.add_after(key, LOOK_AT_PLACES)
        job = kubelet.folder.job()
        if job is not None:
            self._settle(kubelet, job)

    def _settle(self, kubelet: Kubelet, job: PaddleJob) -> None:
        """Where a cluster lets servers of a completed job run on, processes end here; what is known of them stays."""
        if not at_rest(job):
            self._resting[kubelet.key].clear()
            return
        for pod in kubelet.pods.values():
            if pod.alive and not pod.stopped:
                kubelet.end(pod, pod.grace)
        if not any(pod.alive for pod in kubelet.pods.values()):
            kubelet.share.give_back()
            self._write_records()
            self._resting[kubelet.key].set()

    def _bury(self, kubelet: Kubelet) -> None:
        """A deleted job takes its pods along."""
        for pod in list(kubelet.pods.values()):
            if not pod.seen.deleting:
                kubelet.delete(pod.seen.name, pod.seen.uid)
        if kubelet.pods:
            return
        del self._backend.kubelets[kubelet.key]
        kubelet.share.close()
        kubelet.folder.remove()
        self._locks.pop(kubelet.key).release()
        self._resting[kubelet.key].set()

    def _hear(self, name: str, words: dict[str, Any]) -> None:
        uid, _, container = name.partition("/")
        for kubelet in self._backend.kubelets.values():
            pod = kubelet.find(uid)
            if pod:
                kubelet.hear(pod, container, words)
                return

    async def _watch_store(self) -> None:
        """Notice what other commands change."""
        seen: dict[Key, Any] = {}
        while True:
            for key, kubelet in list(self._backend.kubelets.items()):
                document = kubelet.folder.document()
                if seen.get(key) is not document:
                    seen[key] = document
                    self._queue.add(key)
            await asyncio.sleep(LOOK_AT_STORE)

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_MEMORY)
            limited = [
                (kubelet, pod, limit)
                for kubelet in self._backend.kubelets.values()
                for pod in kubelet.pods.values()
                if (limit := pod.memory_limit) is not None and pod.alive
            ]
            used = memory_below(pid for _, pod, _ in limited for pid in pod.alive.values()) if limited else {}
            for kubelet, pod, limit in limited:
                if sum(used.get(pid, 0) for pid in pod.alive.values()) > limit:
                    kubelet.kill_over_memory(pod)

    def _write_records(self) -> None:
        for key, kubelet in self._backend.kubelets.items():
            records = list(kubelet.records.values())
            if self._written.get(key) != records and kubelet.folder.path.exists():
                with suppress(OSError):
                    kubelet.folder.write_pods(records)
                    self._written[key] = [dict(record) for record in records]


def _complain(key: Key, error: Exception) -> None:
    """To the log of the engine; the step is tried again."""
    print(f"{key[0]}/{key[1]}:", *traceback.format_exception(error))
