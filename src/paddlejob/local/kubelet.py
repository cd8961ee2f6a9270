"""The kubelet of this machine: gives bound pods an address, runs their processes, and ends those of deleted pods."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from paddlejob.local.engine_error import log_error
from paddlejob.local.job import LocalJob
from paddlejob.local.machine.addresses import Addresses
from paddlejob.local.pod import LocalPod
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.pod_worker import PodWorker
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.sandbox.proc import memory_below
from paddlejob.local.state.store import JobStore


class Kubelet:
    def __init__(self, store: JobStore, processes: Processes, clock: Callable[[], float]) -> None:
        self._processes = processes
        self._runtime = PodRuntime(store, processes)
        self._addresses = Addresses()
        self._clock = clock
        self._workers: dict[str, PodWorker] = {}
        """By the uid of their pod."""

    async def open(self) -> None:
        await self._processes.open(self.on_report)

    async def close(self) -> None:
        """Kill all containers."""
        await self._processes.close()
        self._addresses.close()

    def sync(self, job: LocalJob) -> None:
        """Start what can be started now."""
        for pod in list(job.pods.values()):
            if pod.seen.node and not pod.seen.address:
                job.update(pod, address=self._addresses.take())
            self._worker(job, pod).sync()

    def delete(self, job: LocalJob, name: str, uid: str, grace: float | None = None) -> None:
        """Terminate the processes, kill them after the grace period, and remove the pod."""
        pod = _pod(job, name, uid)
        if pod is None:
            return
        if not pod.alive:
            self._remove(job, pod)
            return
        seconds = pod.grace if grace is None else grace
        if not pod.seen.deleting:
            pod.change(deletion_due=self._clock() + seconds)
        self._worker(job, pod).terminate(seconds)

    def delete_all(self, job: LocalJob) -> None:
        for pod in list(job.pods.values()):
            if not pod.seen.deleting:
                self.delete(job, pod.seen.name, pod.seen.uid)

    def kill_all(self, job: LocalJob) -> None:
        for pod in job.pods.values():
            self._worker(job, pod).kill()

    def stop(self, job: LocalJob, name: str, uid: str) -> None:
        """Terminate the processes and keep the pod."""
        pod = _pod(job, name, uid)
        if pod is not None:
            self._worker(job, pod).stop()

    def on_report(self, name: str, report: dict[str, Any]) -> None:
        """Take a report of the supervisor about the container UID/NAME.

        An error here would leave the job in a state that no later turn repairs, so it ends this job alone.
        """
        uid, _, container = name.partition("/")
        worker = self._workers.get(uid)
        if worker is None:
            return
        job, pod = worker.job, worker.pod
        try:
            worker.on_report(container, report)
            if "gone" in report and pod.seen.deleting and not pod.alive:
                self._remove(job, pod)
        except Exception as error:
            log_error(error, f"{job.key[0]}/{job.key[1]}")
            if "gone" in report:
                pod.alive.pop(container, None)
            job.abandon(error)

    def enforce_memory_limits(self) -> None:
        """Kill pods that use more memory than their limit, as the kernel does where each has a cgroup."""
        workers = (worker for worker in self._workers.values() if worker.pod.alive)
        limited = [(worker, limit) for worker in workers if (limit := worker.pod.memory_limit) is not None]
        used = memory_below(pid for worker, _ in limited for pid in worker.pod.alive.values()) if limited else {}
        for worker, limit in limited:
            if sum(used.get(pid, 0) for pid in worker.pod.alive.values()) > limit:
                worker.kill_over_memory()

    def forget(self, job: LocalJob) -> None:
        """Another engine may run it from now on; none of its processes lives."""
        for pod in job.pods.values():
            self._forget(pod)

    def _worker(self, job: LocalJob, pod: LocalPod) -> PodWorker:
        known = self._workers.get(pod.seen.uid)
        if known is None:
            known = PodWorker(pod, job, self._runtime, self._processes, self._clock)
            self._workers[pod.seen.uid] = known
        return known

    def _remove(self, job: LocalJob, pod: LocalPod) -> None:
        self._forget(pod)
        shutil.rmtree(pod.own, ignore_errors=True)
        job.remove(pod)

    def _forget(self, pod: LocalPod) -> None:
        self._addresses.give_back(pod.seen.address)
        self._workers.pop(pod.seen.uid, None)


def _pod(job: LocalJob, name: str, uid: str) -> LocalPod | None:
    pod = job.pods.get(name)
    return pod if pod and pod.seen.uid == uid else None
