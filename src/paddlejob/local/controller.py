"""The controller: a turn of a job plans and acts, binds pods, starts them, and releases what is no longer needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.engine.reconcile import Reconciler
from paddlejob.local.backend import LocalBackend
from paddlejob.local.engine_error import log_error, report_error
from paddlejob.local.job import JobRegistry, LocalJob
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
    def __init__(
        self,
        jobs: JobRegistry,
        backend: LocalBackend,
        scheduler: Scheduler,
        kubelet: Kubelet,
        logs: LogWatch,
        clock: Callable[[], float],
        engine_log: Path | None = None,
    ) -> None:
        self.queue: KeyedQueue[Key] = KeyedQueue(min_interval=SECONDS_BETWEEN_TURNS, on_failure=self._on_failure)
        self._jobs = jobs
        self._reconciler = Reconciler(backend, clock, PROGRESS_APART)
        self._scheduler = scheduler
        self._kubelet = kubelet
        self._logs = logs
        self._clock = clock
        self._engine_log = engine_log

    async def run(self) -> None:
        await self.queue.run(self._turn, concurrency=8)

    async def _turn(self, key: Key) -> None:
        job = self._jobs.get(key)
        if job is None:
            return
        if job.error:
            self._end_abandoned(job, job.error)
            return
        await self._sync(job)
        job.failures.clear()

    async def _sync(self, job: LocalJob) -> None:
        document = job.folder.document()
        if document is None or document["metadata"].get("deletionTimestamp"):
            self._collect_garbage(job)
            return
        job.write_records()
        self._reserve_ports(job)
        self._logs.read(job)
        wake_at = await self._reconciler.step(job.key)
        if wake_at is not None:
            self.queue.add_after(job.key, wake_at - self._clock())
        self._schedule(job)
        self._kubelet.sync(job)
        self._settle(job)

    def _reserve_ports(self, job: LocalJob) -> None:
        """Before the first pod is created: the port is part of a pod's manifest."""
        stored = job.folder.job() if job.allocation.port is None else None
        if stored is not None and not is_inactive(stored):
            self._scheduler.reserve_ports(job)

    def _schedule(self, job: LocalJob) -> None:
        """Bind the pods that were just created, or that did not fit before."""
        stored = job.folder.job() if job.unbound_pods() else None
        if stored is None or is_inactive(stored):
            return
        self._scheduler.schedule(job, stored)
        if job.unbound_pods():
            self.queue.add_after(job.key, RESCHEDULE_EVERY)

    def _settle(self, job: LocalJob) -> None:
        """An inactive job gives back what it holds as soon as its last process has ended."""
        stored = job.folder.job()
        if stored is None:
            return
        if not is_inactive(stored):
            job.idle.clear()
        elif not job.has_processes:
            self._release(job)
            job.write_records()
            job.idle.set()

    def _release(self, job: LocalJob) -> None:
        """Give back what a job holds, and look again at jobs that wait for resources."""
        self._scheduler.release(job)
        for other in self._jobs:
            if other is not job and other.unbound_pods():
                self.queue.add(other.key)

    def _collect_garbage(self, job: LocalJob) -> None:
        """Remove what a deleted job owns, as the garbage collector does in a cluster."""
        self._kubelet.delete_all(job)
        if job.pods:
            return
        self._release(job)
        job.folder.remove()
        self._jobs.remove(job)
        job.idle.set()

    def _end_abandoned(self, job: LocalJob, cause: Exception) -> None:
        """Fail a job because of an error of the engine, and end its processes; other jobs keep running."""
        report_error(job.folder, cause, self._engine_log, self._clock(), final=True)
        try:
            self._kubelet.delete_all(job)
        except Exception as error:
            log_error(error, f"{job.key[0]}/{job.key[1]}")
            self._kubelet.kill_all(job)
        if job.has_processes:
            return
        try:
            self._release(job)
            job.write_records()
        finally:
            job.idle.set()

    def _on_failure(self, key: Key, error: Exception) -> None:
        """A turn failed; it is tried again, but not forever."""
        log_error(error, f"{key[0]}/{key[1]}")
        job = self._jobs.get(key)
        if job is None or job.error:
            return
        job.failures.append(self._clock())
        disk_full = isinstance(error, OSError) and error.errno in DISK_FULL
        lasting = len(job.failures) >= MOST_FAILURES and job.failures[-1] - job.failures[0] >= FAILING_SECONDS
        if lasting and not disk_full:
            job.abandon(error)
        else:
            report_error(job.folder, error, self._engine_log, self._clock(), final=False)
