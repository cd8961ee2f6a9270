"""Pods on this machine: placed, held at the gate, started, watched, ended. The part that a kubelet plays elsewhere."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Callable
from typing import Any

from paddlejob.api.types import PaddleJob
from paddlejob.engine.backend import Key
from paddlejob.errors import PaddleJobError
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.pod import LocalPod, ended_phase, last_words, new_pod
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.local.runtime.processes import Processes
from paddlejob.local.store import JobFolder
from paddlejob.plan import PodPhase

KILLED = 137
NO_START = 128
FULL = 64 * 1024
"""With fewer bytes left a disk is called full."""


class Kubelet:
    """The pods of one job. `changed()` is called when the planner should look again."""

    def __init__(
        self,
        folder: JobFolder,
        share: Allocation,
        outfit: PodRuntime,
        processes: Processes,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self.folder = folder
        self.share = share
        self.pods: dict[str, LocalPod] = {}
        self.environments: dict[int, dict[str, str]] = {}
        self._published: dict[str, dict[str, str]] = {}
        """By the name under which pods refer to them."""
        self.services: set[str] = set()
        self.records: dict[str, dict[str, Any]] = {}
        """The newest of each pod, for other commands; it stays when the pod goes."""
        self._outfit = outfit
        self._processes = processes
        self._clock = clock
        self._changed = changed

    @property
    def key(self) -> Key:
        return self.folder.key

    def find(self, uid: str) -> LocalPod | None:
        return next((pod for pod in self.pods.values() if pod.seen.uid == uid), None)

    def create(self, job: PaddleJob, manifest: dict[str, Any]) -> None:
        uid = str(uuid.uuid4())
        pod = new_pod(self.key, uid, manifest, self.folder.path / "pods" / uid, self._clock())
        if pod.seen.name not in self.pods:
            self.pods[pod.seen.name] = pod
            self._tell(pod)
            self.place(job)

    def place(self, job: PaddleJob) -> None:
        """Give every pod without an address its place, if the whole job has one."""
        unplaced = [pod for pod in self.pods.values() if not pod.seen.address and not pod.seen.ended]
        missing = self.share.claim(job) if unplaced else ""
        for pod in unplaced:
            if not missing:
                address = self.share.addresses.take()
                pod.change(address=address, node=self.share.machine.name, reason="", message="")
                self._prepare(pod)
            elif pod.seen.message != missing:
                pod.change(reason="Unschedulable", message=missing)
                self._tell(pod)

    def publish(self, name: str, attempt: int, variables: dict[str, str]) -> None:
        """Open the gate of an attempt."""
        self.environments.setdefault(attempt, variables)
        self._published[name] = self.environments[attempt]
        for pod in list(self.pods.values()):
            if pod.seen.attempt == attempt and pod.seen.phase is PodPhase.WAITING and not pod.seen.deleting:
                self._start_all(pod)

    def delete(self, name: str, uid: str, force: bool = False) -> None:
        pod = self.pods.get(name)
        if pod is None or pod.seen.uid != uid:
            return
        if not pod.alive:
            self._remove(pod)
            return
        if not pod.seen.deleting:
            pod.change(deletion_due=self._clock() + pod.grace)
        self.end(pod, 0.0 if force else pod.grace)

    def stop(self, name: str, uid: str) -> None:
        """End the processes, keep the pod."""
        pod = self.pods.get(name)
        if pod is None or pod.seen.uid != uid:
            return
        pod.change(stopping=True)
        if pod.alive:
            self.end(pod, pod.grace)
        else:
            self._finish(pod, None, "DeadlineExceeded", "")

    def end(self, pod: LocalPod, grace: float) -> None:
        """Because we want it: how its program exits then says nothing about it."""
        pod.stopped = True
        self._end_containers(pod, grace)

    def kill_over_memory(self, pod: LocalPod) -> None:
        pod.over_memory = True
        self._end_containers(pod, 0.0)

    def hear(self, pod: LocalPod, container: str, words: dict[str, Any]) -> None:
        """A report of the nursery about one container."""
        main = container == pod.main["name"]
        match words:
            case {"started": pid}:
                pod.alive[container] = pid
                if main:
                    pod.started = self._clock()
                    pod.change(phase=PodPhase.RUNNING)
            case {"failed": why}:
                if main or pod.initialising:
                    self._finish(pod, NO_START, "StartError", why)
            case {"ended": code, "oom": oom}:
                self._ended(pod, container, code, oom)
            case {"gone": True}:
                pod.alive.pop(container, None)
                if main:
                    self._ended(pod, container, KILLED, False)
                if pod.seen.deleting and not pod.alive:
                    self._remove(pod)
        self._tell(pod)
        self._changed()

    def _ended(self, pod: LocalPod, container: str, code: int, oom: bool) -> None:
        if pod.seen.ended:
            return
        if pod.stopped and not pod.seen.stopping:
            pod.ended = self._clock()
        elif pod.initialising:
            self._init_ended(pod, code)
        elif container == pod.main["name"]:
            trouble = "OOMKilled" if oom or pod.over_memory else "DeadlineExceeded" if pod.seen.stopping else ""
            self._finish(pod, code, trouble, self._last_words(pod, pod.main) if code else "")
            self._end_containers(pod, pod.grace)

    def _init_ended(self, pod: LocalPod, code: int) -> None:
        container = pod.init_containers[pod.inits_done]
        if code == 0:
            pod.inits_done += 1
            self._go_on(pod)
        else:
            words = f"init container {container['name']} failed:\n{self._last_words(pod, container)}"
            self._finish(pod, code, "", words)

    def _finish(self, pod: LocalPod, code: int | None, trouble: str, words: str) -> None:
        pod.ended = self._clock()
        phase = PodPhase.FAILED if code is None else ended_phase(code)
        pod.change(phase=phase, exit_code=code, reason=trouble, message=words)
        self._tell(pod)
        self._changed()

    def _last_words(self, pod: LocalPod, container: dict[str, Any]) -> str:
        words = last_words(self._outfit.log(pod, container))
        if shutil.disk_usage(self.folder.path).free < FULL:
            return f"{words}\nthe disk is full (No space left on device): free some room on that of {self.folder.path}"
        return words

    def _prepare(self, pod: LocalPod) -> None:
        try:
            self._outfit.furnish(pod)
        except (PaddleJobError, OSError) as error:
            self._finish(pod, NO_START, "StartError", str(error))
        else:
            self._go_on(pod)

    def _go_on(self, pod: LocalPod) -> None:
        """Init containers one after the other; then the pod waits for its environment."""
        if pod.initialising:
            self._start(pod, pod.init_containers[pod.inits_done])
        else:
            pod.change(phase=PodPhase.WAITING)
            if pod.seen.attempt in self.environments:
                self._start_all(pod)
        self._tell(pod)
        self._changed()

    def _start_all(self, pod: LocalPod) -> None:
        for container in pod.manifest["spec"]["containers"]:
            self._start(pod, container)

    def _start(self, pod: LocalPod, container: dict[str, Any]) -> None:
        """Where there are Services, pods of the attempt know each other by name."""
        peers = [one.seen for one in self.pods.values() if self.services and one.seen.attempt == pod.seen.attempt]
        try:
            launch = self._outfit.launch(pod, container, self._published, peers, self.share.gpus(pod.seen.name))
        except (PaddleJobError, OSError) as error:
            self._finish(pod, NO_START, "StartError", str(error))
            return
        pod.alive[container["name"]] = 0
        self._processes.start(launch)

    def _end_containers(self, pod: LocalPod, grace: float) -> None:
        for container in pod.alive:
            if grace:
                self._processes.end(f"{pod.seen.uid}/{container}")
                asyncio.get_running_loop().call_later(grace, self._kill, pod, container)
            else:
                self._kill(pod, container)

    def _kill(self, pod: LocalPod, container: str) -> None:
        if container in pod.alive:
            self._processes.kill(f"{pod.seen.uid}/{container}")

    def _remove(self, pod: LocalPod) -> None:
        if self.pods.get(pod.seen.name) is pod:
            del self.pods[pod.seen.name]
        if pod.seen.address:
            self.share.addresses.give_back(pod.seen.address)
        shutil.rmtree(pod.own, ignore_errors=True)
        pod.removed = True
        self._tell(pod)
        self._changed()

    def _tell(self, pod: LocalPod) -> None:
        known = self.records.get(pod.seen.name)
        if known is None or pod.seen.attempt >= known["attempt"]:
            self.records[pod.seen.name] = pod.record(self._outfit.log(pod, pod.main))
