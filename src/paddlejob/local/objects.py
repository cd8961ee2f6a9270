"""The objects of one job, as an API server would hold them: its pods, their environments and its Services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from paddlejob.engine.backend import Key
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.pod import LocalPod
from paddlejob.local.state.logs import prune_logs
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder
from paddlejob.plan import Pod


class JobObjects:
    """`on_change()` is called after each change of a pod, so that the planner looks again."""

    def __init__(self, folder: JobFolder, on_change: Callable[[], None] = lambda: None) -> None:
        self.folder = folder
        self.allocation = Allocation()
        self.pods: dict[str, LocalPod] = {}
        self.environments: dict[int, str] = {}
        """By attempt: the name of its ConfigMap."""
        self.config_maps: dict[str, Mapping[str, str]] = {}
        self.services: set[str] = set()
        self._on_change = on_change
        self._records: dict[str, PodRecord] = {}
        """The newest of each pod; it stays when the pod is removed."""
        self._written: list[PodRecord] = []

    @property
    def key(self) -> Key:
        return self.folder.key

    def find(self, uid: str) -> LocalPod | None:
        return next((pod for pod in self.pods.values() if pod.seen.uid == uid), None)

    def unbound_pods(self) -> list[LocalPod]:
        return [pod for pod in self.pods.values() if not pod.seen.address and not pod.seen.ended]

    def peers(self, pod: LocalPod) -> list[Pod]:
        """Pods that can be reached by name: all of the attempt, if the job has Services."""
        pods = (one.seen for one in self.pods.values())
        return [one for one in pods if one.attempt == pod.seen.attempt] if self.services else []

    def add(self, pod: LocalPod) -> None:
        if pod.seen.name not in self.pods:
            self.pods[pod.seen.name] = pod
            self._record(pod)

    def update(self, pod: LocalPod, **changes: Any) -> None:
        """Change what the planner sees of a pod."""
        pod.change(**changes)
        self._record(pod)
        self._on_change()

    def remove(self, pod: LocalPod) -> None:
        if self.pods.get(pod.seen.name) is pod:
            del self.pods[pod.seen.name]
        pod.removed = True
        self.update(pod)

    def publish(self, attempt: int, name: str, variables: Mapping[str, str]) -> None:
        """Store the environment of an attempt, which begins with it; one that exists is not replaced."""
        if attempt not in self.environments:
            self.environments[attempt] = name
            self.config_maps[name] = variables
            prune_logs(self.folder, attempt)

    def unpublish(self, attempt: int) -> None:
        self.config_maps.pop(self.environments.pop(attempt, ""), None)

    def is_published(self, pod: LocalPod) -> bool:
        return pod.seen.attempt in self.environments

    def write_records(self) -> None:
        """Write pods.json if it changed; on a full disk the job keeps running without it."""
        records = list(self._records.values())
        if self._written != records and self.folder.path.exists():
            with suppress(OSError):
                self.folder.write_pods(records)
                self._written = records

    def _record(self, pod: LocalPod) -> None:
        known = self._records.get(pod.seen.name)
        if known is None or pod.seen.attempt >= known.attempt:
            log = self.folder.log(pod.seen.attempt, pod.seen.name)
            self._records[pod.seen.name] = pod.record(log)
