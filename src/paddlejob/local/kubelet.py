"""The pods of one job as processes: starts pods that are bound, ends those that are deleted or stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from paddlejob.local.objects import JobObjects
from paddlejob.local.pod import LocalPod
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.pod_worker import PodWorker
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.sandbox.proc import memory_below


class Kubelet:
    """`unbind(pod)` is called when a pod is removed, so that its address can be given to another."""

    def __init__(
        self,
        objects: JobObjects,
        runtime: PodRuntime,
        processes: Processes,
        clock: Callable[[], float],
        unbind: Callable[[LocalPod], None],
    ) -> None:
        self.objects = objects
        self.runtime = runtime
        self._clock = clock
        self._unbind = unbind
        self._worker = partial(PodWorker, objects=objects, runtime=runtime, processes=processes, clock=clock)

    @property
    def has_processes(self) -> bool:
        return any(pod.alive for pod in self.objects.pods.values())

    def sync(self) -> None:
        """Start what can be started now."""
        for pod in list(self.objects.pods.values()):
            self._worker(pod).sync()

    def delete(self, name: str, uid: str, grace: float | None = None) -> None:
        """Terminate the processes, kill them after the grace period, and remove the pod."""
        pod = self._pod(name, uid)
        if pod is None:
            return
        if not pod.alive:
            self._remove(pod)
            return
        seconds = pod.grace if grace is None else grace
        if not pod.seen.deleting:
            pod.change(deletion_due=self._clock() + seconds)
        self._worker(pod).terminate(seconds)

    def delete_all(self) -> None:
        for pod in list(self.objects.pods.values()):
            if not pod.seen.deleting:
                self.delete(pod.seen.name, pod.seen.uid)

    def kill_all(self) -> None:
        for pod in self.objects.pods.values():
            self._worker(pod).kill()

    def stop(self, name: str, uid: str) -> None:
        """Terminate the processes and keep the pod."""
        pod = self._pod(name, uid)
        if pod is not None:
            self._worker(pod).stop()

    def on_report(self, pod: LocalPod, container: str, report: dict[str, Any]) -> None:
        """Take a report of the supervisor about one container."""
        self._worker(pod).on_report(container, report)
        if "gone" in report and pod.seen.deleting and not pod.alive:
            self._remove(pod)

    def kill_over_memory(self, pod: LocalPod) -> None:
        self._worker(pod).kill_over_memory()

    def _pod(self, name: str, uid: str) -> LocalPod | None:
        pod = self.objects.pods.get(name)
        return pod if pod and pod.seen.uid == uid else None

    def _remove(self, pod: LocalPod) -> None:
        self._unbind(pod)
        shutil.rmtree(pod.own, ignore_errors=True)
        self.objects.remove(pod)


def enforce_memory_limits(kubelets: Iterable[Kubelet]) -> None:
    """Kill pods that use more memory than their limit, as the kernel does where each has a cgroup."""
    limited = [
        (kubelet, pod, limit)
        for kubelet in kubelets
        for pod in kubelet.objects.pods.values()
        if (limit := pod.memory_limit) is not None and pod.alive
    ]
    used = memory_below(pid for _, pod, _ in limited for pid in pod.alive.values()) if limited else {}
    for kubelet, pod, limit in limited:
        if sum(used.get(pid, 0) for pid in pod.alive.values()) > limit:
            kubelet.kill_over_memory(pod)
