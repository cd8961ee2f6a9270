"""The controller: a turn of a job plans and acts, binds pods, starts them, and releases what is no longer needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.local.backend import LocalBackend
from paddlejob.local.engine_error import log_error, report_error
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.log_watch import LogWatch
from paddlejob.local.scheduler import Scheduler
from paddlejob.local.state.files import DISK_FULL
from paddlejob.local.state.store import is_inactive

RESCHEDULE_EVERY = 1.0
"""Resources may also be released by jobs of other engines."""
SECONDS_BETWEEN_TURNS = 0.02
PROGRESS_APART = 2.0
"""Seconds between two reports of steps alone; here a status is only a file."""
MOST_FAILURES = 6
FAILING_SECONDS = 3.0
"""A job whose turns keep failing, this often and for this long, is failed; on a full disk it keeps running."""


class JobController:
    """`on_deleted(key)` is called when a deleted job and all that it owned are gone."""

    def __init__(
        self,
        backend: LocalBackend,
        scheduler: Scheduler,
        clock: Callable[[], float],
        on_deleted: Callable[[Key], None],
        log: Path | None = None,
        logs: LogWatch | None = None,
    ) -> None:
        self.queue: KeyedQueue[Key] = KeyedQueue(min_interval=SECONDS_BETWEEN_TURNS, on_failure=self._on_failure)
        self._backend = backend
        self._reconciler = Reconciler(backend, clock, PROGRESS_APART)
        self._scheduler = scheduler
        self._clock = clock
        self._on_deleted = on_deleted
        self._logs = logs or LogWatch(backend, clock)
        self._idle: dict[Key, asyncio.Event] = {}
        self._log = log
        self._failures: dict[Key, list[float]] = {}
        """When the turns of a job failed, since the last that did not."""
        self._abandoned: set[Key] = set()

    def add(self, key: Key, kubelet: Kubelet) -> None:
        self._backend.kubelets[key] = kubelet
        self._idle[key] = asyncio.Event()
        self.queue.add(key)

    async def run(self) -> None:
        await self.queue.run(self._turn, concurrency=8)

    def is_idle(self, key: Key) -> bool:
        return self._idle[key].is_set()

    def is_abandoned(self, key: Key) -> bool:
        """Whether an error of the engine ended the job."""
        return key in self._abandoned

    def abandon(self, key: Key, cause: Exception) -> None:
        """Fail a job because of an error of the engine, and end its processes; other jobs keep running."""
        kubelet = self._backend.kubelets[key]
        self._abandoned.add(key)
        report_error(kubelet.objects.folder, cause, self._log, self._clock(), final=True)
        try:
            kubelet.delete_all()
        except Exception as error:
            log_error(error, f"{key[0]}/{key[1]}")
            kubelet.kill_all()
        self.queue.add(key)

    async def wait_until_idle(self, key: Key) -> None:
        """Wait until the job has finished, is suspended or is deleted, and none of its processes lives."""
        await self._idle[key].wait()

    async def _turn(self, key: Key) -> None:
        kubelet = self._backend.kubelets.get(key)
        if kubelet is None:
            return
        if key in self._abandoned:
            self._settle_abandoned(kubelet)
            return
        await self._sync(key, kubelet)
        self._failures.pop(key, None)

    async def _sync(self, key: Key, kubelet: Kubelet) -> None:
        document = kubelet.objects.folder.document()
        if document is None or document["metadata"].get("deletionTimestamp"):
            self._collect_garbage(kubelet)
            return
        kubelet.objects.write_records()
        self._reserve_ports(kubelet)
        self._logs.read(key)
        wake_at = await self._reconciler.step(key)
        if wake_at is not None:
            self.queue.add_after(key, wake_at - self._clock())
        self._schedule(kubelet)
        kubelet.sync()
        self._settle(kubelet)

    def _reserve_ports(self, kubelet: Kubelet) -> None:
        """Before the first pod is created: the port is part of a pod's manifest."""
        job = kubelet.objects.folder.job() if kubelet.objects.allocation.port is None else None
        if job is not None and not is_inactive(job):
            self._scheduler.reserve_ports(kubelet.objects)

    def _schedule(self, kubelet: Kubelet) -> None:
        """Bind the pods that were just created, or that did not fit before."""
        objects = kubelet.objects
        job = objects.folder.job() if objects.unbound_pods() else None
        if job is None or is_inactive(job):
            return
        self._scheduler.schedule(objects, job, overcommit=kubelet.runtime.options.overcommit)
        if objects.unbound_pods():
            self.queue.add_after(objects.key, RESCHEDULE_EVERY)

    def _settle(self, kubelet: Kubelet) -> None:
        """An inactive job gives back what it holds as soon as its last process has ended."""
        key = kubelet.objects.key
        job = kubelet.objects.folder.job()
        if job is None:
            return
        if not is_inactive(job):
            self._idle[key].clear()
        elif not kubelet.has_processes:
            self._release(kubelet)
            kubelet.objects.write_records()
            self._idle[key].set()

    def _release(self, kubelet: Kubelet) -> None:
        """Give back what a job holds, and look again at jobs that wait for resources."""
        self._scheduler.release(kubelet.objects)
        for key, other in self._backend.kubelets.items():
            if other is not kubelet and other.objects.unbound_pods():
                self.queue.add(key)

    def _collect_garbage(self, kubelet: Kubelet) -> None:
        """Remove what a deleted job owns, as the garbage collector does in a cluster."""
        kubelet.delete_all()
        if kubelet.objects.pods:
            return
        key = kubelet.objects.key
        del self._backend.kubelets[key]
        self._release(kubelet)
        kubelet.objects.folder.remove()
        self._on_deleted(key)
        self._idle[key].set()

    def _settle_abandoned(self, kubelet: Kubelet) -> None:
        if kubelet.has_processes:
            return
        try:
            self._release(kubelet)
            kubelet.objects.write_records()
        finally:
            self._idle[kubelet.objects.key].set()

    def _on_failure(self, key: Key, error: Exception) -> None:
        """A turn failed; it is tried again, but not forever."""
        log_error(error, f"{key[0]}/{key[1]}")
        kubelet = self._backend.kubelets.get(key)
        if kubelet is None or key in self._abandoned:
            return
        failures = self._failures.setdefault(key, [])
        failures.append(self._clock())
        disk_full = isinstance(error, OSError) and error.errno in DISK_FULL
        lasting = len(failures) >= MOST_FAILURES and failures[-1] - failures[0] >= FAILING_SECONDS
        if lasting and not disk_full:
            self.abandon(key, error)
        else:
            report_error(kubelet.objects.folder, error, self._log, self._clock(), final=False)
