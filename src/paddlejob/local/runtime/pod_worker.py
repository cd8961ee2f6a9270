"""The life of one pod: volumes, init containers, the start barrier, its containers, and how it ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from typing import Any

from paddlejob.delays import exponential_delay
from paddlejob.errors import PaddleJobError
from paddlejob.local.engine_error import log_error
from paddlejob.local.job import LocalJob
from paddlejob.local.pod import LocalPod, Manifest, is_sidecar
from paddlejob.local.runtime.hooks import POST_START, PRE_STOP, hook_of, is_hook
from paddlejob.local.runtime.pod_runtime import PodRuntime, termination_message
from paddlejob.local.runtime.processes import Processes
from paddlejob.logs.files import log_tail
from paddlejob.plan import PodPhase
from paddlejob.plan.diagnosis.permanent import HOOK_FAILED, INVALID_TEMPLATE

KILLED = 137
NOT_STARTED = 128
LEAST_FREE = 64 * 1024
"""With fewer bytes left, a disk counts as full."""
FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 60.0
"""Seconds until a sidecar that ended is started again; doubled each time."""


class PodWorker:
    """Keeps no state of its own: the pod does."""

    def __init__(
        self,
        pod: LocalPod,
        job: LocalJob,
        runtime: PodRuntime,
        processes: Processes,
        clock: Callable[[], float],
    ) -> None:
        self.pod = pod
        self.job = job
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
        elif pod.seen.phase is PodPhase.WAITING and not pod.is_started and self.job.is_published(pod):
            self._start_all()

    def terminate(self, grace: float) -> None:
        """On request: the exit code of the program then says nothing about it."""
        self.pod.stopped = True
        self._end_containers(grace)

    def stop(self) -> None:
        """Terminate the processes and keep the pod."""
        self.job.update(self.pod, stopping=True)
        if self.pod.alive:
            self.terminate(self.pod.grace)
        elif not self.pod.seen.ended:
            self._finish(None, "DeadlineExceeded", "")

    def kill(self) -> None:
        self.pod.stopped = True
        self._end_containers(0.0)

    def kill_over_memory(self) -> None:
        self.pod.over_memory = True
        self._end_containers(0.0)

    def on_report(self, container: str, report: dict[str, Any]) -> None:
        """Take a report of the supervisor about one container or hook."""
        match report:
            case {"started": pid}:
                self.pod.alive[container] = pid
                self._on_started(container)
            case {"failed": message}:
                self._on_start_failure(container, message)
            case {"ended": code, "oom": oom}:
                self.pod.exited.add(container)
                self._on_exit(container, code, oom)
            case {"gone": True}:
                self._on_gone(container)
        self.job.update(self.pod)

    def _prepare(self) -> None:
        self.pod.prepared = True
        try:
            self._runtime.prepare_volumes(self.job, self.pod)
        except Exception as error:
            self._fail_start(_start_reason(error), _message(error))
        else:
            self._advance()

    def _advance(self) -> None:
        """Run init containers one after the other; then the pod waits for its environment."""
        pod = self.pod
        if pod.initializing:
            self._start(pod.init_containers[pod.inits_done])
        else:
            self.job.update(pod, phase=PodPhase.WAITING)
            if self.job.is_published(pod):
                self._start_all()

    def _start_all(self) -> None:
        for container in self.pod.manifest["spec"]["containers"]:
            if not self.pod.seen.ended:
                self._start(container)

    def _start(self, container: Manifest) -> None:
        pod = self.pod
        try:
            spec = self._runtime.process_spec(self.job, pod, container)
        except Exception as error:
            self._fail_start(_start_reason(error), _message(error))
            return
        pod.alive[container["name"]] = 0
        pod.exited.discard(container["name"])
        self._processes.start(spec)

    def _on_started(self, name: str) -> None:
        pod = self.pod
        if name == pod.main["name"]:
            pod.started = self._clock()
            pod.change(phase=PodPhase.RUNNING)
        container = pod.container(name)
        hook = hook_of(container, POST_START)
        if hook and not pod.ending:
            self._start(hook)
        if container and name == pod.current_init and is_sidecar(container) and not pod.ending:
            pod.inits_done += 1
            self._advance()

    def _on_start_failure(self, name: str, message: str) -> None:
        pod = self.pod
        if name in (pod.main["name"], pod.current_init):
            self._fail_start("StartError", message)
        elif is_hook(name):
            pod.exited.add(name)
            self._on_hook_failure(name, f"could not start: {message}")
        else:
            self._note(f"container {name} of {pod.seen.name} could not start: {message}")

    def _on_exit(self, name: str, code: int, oom: bool) -> None:
        pod = self.pod
        if is_hook(name):
            if code:
                self._on_hook_failure(name, f"failed with exit status {code}")
        elif pod.seen.ended:
            return
        elif pod.stopped and not pod.seen.stopping:
            pod.ended = self._clock()
        elif name == pod.current_init and not is_sidecar(pod.init_containers[pod.inits_done]):
            self._on_init_exit(code, oom)
        elif name == pod.main["name"]:
            self._on_main_exit(code, oom)
            self._end_containers(pod.grace)
        elif not pod.ending and code:
            self._note(f"container {name} of {pod.seen.name} failed with exit status {code}; see its log")

    def _on_main_exit(self, code: int, oom: bool) -> None:
        pod, reason = self.pod, self._why(oom)
        if pod.failed_hook and not reason:
            self._finish(code, HOOK_FAILED, pod.failed_hook)
        else:
            self._finish(code, reason, self._output(pod.main, code))

    def _on_init_exit(self, code: int, oom: bool) -> None:
        pod = self.pod
        container = pod.init_containers[pod.inits_done]
        reason = self._why(oom)
        if code == 0 and not pod.ending:
            pod.inits_done += 1
            self._advance()
            return
        output = self._output(container, code)
        self._finish(code or None, reason, f"init container {container['name']} failed:\n{output}")
        self._end_containers(pod.grace)

    def _on_hook_failure(self, name: str, how: str) -> None:
        """As a kubelet does, kill a container whose postStart hook failed."""
        pod = self.pod
        container, _, kind = name.partition(".")
        if kind == POST_START and pod.ending:
            return
        self._note(f"the {kind} hook of container {container} of {pod.seen.name} {how}")
        if kind == POST_START:
            if container == pod.main["name"]:
                pod.failed_hook = f"its {kind} hook {how}\n{self._log_tail({'name': name})}"
            self._kill(container)

    def _on_gone(self, name: str) -> None:
        pod = self.pod
        pod.alive.pop(name, None)
        if name not in pod.exited:
            self._on_exit(name, KILLED, False)
        if name.endswith(f".{PRE_STOP}"):
            self._processes.terminate(f"{pod.seen.uid}/{name.partition('.')[0]}")
        container = pod.container(name)
        if pod.ending:
            self._terminate_sidecars()
        elif container and is_sidecar(container) and not pod.seen.ended:
            self._restart_later(container)
        if pod.seen.stopping and not pod.alive and not pod.seen.ended:
            self._finish(None, "DeadlineExceeded", "")

    def _restart_later(self, container: Manifest) -> None:
        pod, name = self.pod, container["name"]
        pod.restarts[name] += 1
        delay = exponential_delay(pod.restarts[name], FIRST_BACKOFF, LONGEST_BACKOFF)
        asyncio.get_running_loop().call_later(delay, self._restart, container)

    def _restart(self, container: Manifest) -> None:
        pod = self.pod
        if not (pod.ending or pod.seen.ended or pod.removed or container["name"] in pod.alive):
            self._start(container)

    def _why(self, oom: bool) -> str:
        return "OOMKilled" if oom or self.pod.over_memory else "DeadlineExceeded" if self.pod.seen.stopping else ""

    def _fail_start(self, reason: str, message: str) -> None:
        self._finish(NOT_STARTED, reason, message)
        self._end_containers(self.pod.grace)

    def _finish(self, code: int | None, reason: str, message: str) -> None:
        self.pod.ended = self._clock()
        phase = PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED
        self.job.update(self.pod, phase=phase, exit_code=code, reason=reason, message=message)

    def _note(self, note: str) -> None:
        self.pod.note = note

    def _output(self, container: Manifest, code: int) -> str:
        """The termination message of a container, or the end of its log if it failed without one."""
        written = termination_message(self.pod, container)
        return written or (self._log_tail(container) if code else "")

    def _log_tail(self, container: Manifest) -> str:
        tail = log_tail(self.job.log(self.pod, container))
        state = self.job.folder.path
        if shutil.disk_usage(state).free < LEAST_FREE:
            return f"{tail}\nthe disk is full (No space left on device); free some space on the disk of {state}"
        return tail

    def _end_containers(self, grace: float) -> None:
        """Terminate the containers, and sidecars after them; kill what is left when the grace period is over."""
        pod = self.pod
        pod.ending = True
        for container in list(pod.alive):
            if grace:
                asyncio.get_running_loop().call_later(grace, self._kill, container)
            else:
                self._kill(container)
        if grace:
            for container in pod.programs:
                self._terminate(container)
            self._terminate_sidecars()

    def _terminate_sidecars(self) -> None:
        if not self.pod.programs:
            for container in list(self.pod.alive):
                self._terminate(container)

    def _terminate(self, name: str) -> None:
        """Ask a container to end, once, after its preStop hook."""
        pod = self.pod
        if name in pod.terminated or name.endswith(f".{PRE_STOP}"):
            return
        pod.terminated.add(name)
        hook = hook_of(pod.container(name), PRE_STOP)
        if hook and name not in pod.exited:
            self._start(hook)
        else:
            self._processes.terminate(f"{pod.seen.uid}/{name}")

    def _kill(self, container: str) -> None:
        for name in (container, f"{container}.{PRE_STOP}"):
            if name in self.pod.alive:
                self._processes.kill(f"{self.pod.seen.uid}/{name}")


def _start_reason(error: Exception) -> str:
    """What this engine cannot do, or does not find in the job's file, it cannot do in another attempt either."""
    return INVALID_TEMPLATE if isinstance(error, PaddleJobError) else "StartError"


def _message(error: Exception) -> str:
    """Of an error that is not raised on purpose, also its type; the traceback is in the log of the engine."""
    if isinstance(error, PaddleJobError | OSError):
        return str(error)
    log_error(error, "a container could not be started")
    return f"{type(error).__name__}: {error}; the traceback is in engine.log of the job"
