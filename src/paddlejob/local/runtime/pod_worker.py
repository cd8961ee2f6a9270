"""The life of one pod: volumes, init containers, the start barrier, its containers, and how it ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from typing import Any

from paddlejob.errors import PaddleJobError
from paddlejob.local.logs import log_tail
from paddlejob.local.objects import JobObjects
from paddlejob.local.pod import LocalPod
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.processes import Processes
from paddlejob.plan import PodPhase
from paddlejob.plan.permanent import INVALID_TEMPLATE

KILLED = 137
NOT_STARTED = 128
LEAST_FREE = 64 * 1024
"""With fewer bytes left, a disk counts as full."""


class PodWorker:
    """Keeps no state of its own: the pod does."""

    def __init__(
        self,
        pod: LocalPod,
        objects: JobObjects,
        runtime: PodRuntime,
        processes: Processes,
        clock: Callable[[], float],
    ) -> None:
        self.pod = pod
        self._objects = objects
        self._runtime = runtime
        self._processes = processes
        self._clock = clock

    def sync(self) -> None:
        """Start what can be started now: a pod that is bound, or one whose environment was published."""
        pod = self.pod
        if pod.seen.deleting or pod.seen.ended:
            return
        if pod.seen.node and not pod.prepared:
            self._prepare()
        elif pod.seen.phase is PodPhase.WAITING and not pod.alive and self._objects.is_published(pod):
            self._start_all()

    def terminate(self, grace: float) -> None:
        """On request: the exit code of the program then says nothing about it."""
        self.pod.stopped = True
        self._end_containers(grace)

    def stop(self) -> None:
        """Terminate the processes and keep the pod."""
        self._objects.update(self.pod, stopping=True)
        if self.pod.alive:
            self.terminate(self.pod.grace)
        elif not self.pod.seen.ended:
            self._finish(None, "DeadlineExceeded", "")

    def kill_over_memory(self) -> None:
        self.pod.over_memory = True
        self._end_containers(0.0)

    def on_report(self, container: str, report: dict[str, Any]) -> None:
        """Take a report of the supervisor about one container."""
        pod = self.pod
        main = container == pod.main["name"]
        match report:
            case {"started": pid}:
                pod.alive[container] = pid
                if main:
                    pod.started = self._clock()
                    pod.change(phase=PodPhase.RUNNING)
            case {"failed": message}:
                if main or pod.initializing:
                    self._finish(NOT_STARTED, "StartError", message)
            case {"ended": code, "oom": oom}:
                self._on_exit(container, code, oom)
            case {"gone": True}:
                pod.alive.pop(container, None)
                if main:
                    self._on_exit(container, KILLED, False)
        self._objects.update(pod)

    def _prepare(self) -> None:
        self.pod.prepared = True
        try:
            self._runtime.prepare_volumes(self.pod)
        except (PaddleJobError, OSError) as error:
            self._finish(NOT_STARTED, _start_reason(error), str(error))
        else:
            self._advance()

    def _advance(self) -> None:
        """Run init containers one after the other; then the pod waits for its environment."""
        pod = self.pod
        if pod.initializing:
            self._start(pod.init_containers[pod.inits_done])
        else:
            self._objects.update(pod, phase=PodPhase.WAITING)
            if self._objects.is_published(pod):
                self._start_all()

    def _start_all(self) -> None:
        for container in self.pod.manifest["spec"]["containers"]:
            if not self.pod.seen.ended:
                self._start(container)

    def _start(self, container: dict[str, Any]) -> None:
        pod = self.pod
        try:
            spec = self._runtime.process_spec(pod, container, self._objects.config_maps, self._objects.peers(pod))
        except (PaddleJobError, OSError) as error:
            self._finish(NOT_STARTED, _start_reason(error), str(error))
            return
        pod.alive[container["name"]] = 0
        self._processes.start(spec)

    def _on_exit(self, container: str, code: int, oom: bool) -> None:
        pod = self.pod
        if pod.seen.ended:
            return
        if pod.stopped and not pod.seen.stopping:
            pod.ended = self._clock()
        elif pod.initializing:
            self._on_init_exit(code)
        elif container == pod.main["name"]:
            reason = "OOMKilled" if oom or pod.over_memory else "DeadlineExceeded" if pod.seen.stopping else ""
            self._finish(code, reason, self._log_tail(pod.main) if code else "")
            self._end_containers(pod.grace)

    def _on_init_exit(self, code: int) -> None:
        container = self.pod.init_containers[self.pod.inits_done]
        if code == 0:
            self.pod.inits_done += 1
            self._advance()
        else:
            self._finish(code, "", f"init container {container['name']} failed:\n{self._log_tail(container)}")

    def _finish(self, code: int | None, reason: str, message: str) -> None:
        self.pod.ended = self._clock()
        phase = PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED
        self._objects.update(self.pod, phase=phase, exit_code=code, reason=reason, message=message)

    def _log_tail(self, container: dict[str, Any]) -> str:
        tail = log_tail(self._runtime.log(self.pod, container))
        state = self._objects.folder.path
        if shutil.disk_usage(state).free < LEAST_FREE:
            return f"{tail}\nthe disk is full (No space left on device); free some space on the disk of {state}"
        return tail

    def _end_containers(self, grace: float) -> None:
        for container in self.pod.alive:
            if grace:
                self._processes.terminate(f"{self.pod.seen.uid}/{container}")
                asyncio.get_running_loop().call_later(grace, self._kill, container)
            else:
                self._kill(container)

    def _kill(self, container: str) -> None:
        if container in self.pod.alive:
            self._processes.kill(f"{self.pod.seen.uid}/{container}")


def _start_reason(error: Exception) -> str:
    """What this engine cannot do, or does not find in the job's file, it cannot do in another attempt either."""
    return INVALID_TEMPLATE if isinstance(error, PaddleJobError) else "StartError"
