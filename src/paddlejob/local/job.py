"""A job that this engine runs: its objects, as an API server would hold them, and what it holds on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from paddlejob.engine.backend import Key
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.pod import LocalPod, Manifest
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.runner_lock import RunnerLock
from paddlejob.local.state.store import JobFolder
from paddlejob.logs.files import prune_logs
from paddlejob.plan import Pod
from paddlejob.plan.world import LogReading


class LocalJob:
    """`on_change()` is called after each change of a pod, so that the planner looks again."""

    def __init__(self, folder: JobFolder, lock: RunnerLock, on_change: Callable[[], None] = lambda: None) -> None:
        self.folder = folder
        self.options = folder.options()
        self.allocation = Allocation()
        self.pods: dict[str, LocalPod] = {}
        self.environments: dict[int, str] = {}
        """By attempt: the name of its ConfigMap."""
        self.config_maps: dict[str, Mapping[str, str]] = {}
        self.services: set[str] = set()
        self.reading: LogReading | None = None
        """What its logs tell."""
        self.idle = asyncio.Event()
        """Set when it has finished, is suspended or is deleted, and none of its processes lives."""
        self.failures: list[float] = []
        """When its turns failed, since the last that did not."""
        self.error: Exception | None = None
        """The error of the engine that ended the job."""
        self._lock = lock
        self._on_change = on_change
        self._records: dict[str, PodRecord] = {}
        """The newest of each pod; it stays when the pod is removed."""
        self._written: list[PodRecord] = []

    @property
    def key(self) -> Key:
        return self.folder.key

    @property
    def has_processes(self) -> bool:
        return any(pod.alive for pod in self.pods.values())

    def abandon(self, error: Exception) -> None:
        """Fail the job because of an error of the engine; its next turn ends its processes."""
        self.error = error
        self._on_change()

    def unbound_pods(self) -> list[LocalPod]:
        return [pod for pod in self.pods.values() if not pod.seen.node and not pod.seen.ended]

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
            prune_logs(self.folder.path, attempt)

    def unpublish(self, attempt: int) -> None:
        self.config_maps.pop(self.environments.pop(attempt, ""), None)

    def is_published(self, pod: LocalPod) -> bool:
        return pod.seen.attempt in self.environments

    def log(self, pod: LocalPod, container: Manifest) -> Path:
        """The log of the training container is named after the pod alone."""
        name = "" if container["name"] == pod.main["name"] else container["name"]
        return self.folder.log(pod.seen.attempt, pod.seen.name, name)

    def write_records(self) -> None:
        """Write pods.json if it changed; on a full disk the job keeps running without it."""
        records = list(self._records.values())
        if self._written != records and self.folder.path.exists():
            with suppress(OSError):
                self.folder.write_pods(records)
                self._written = records

    def release(self) -> None:
        """Let other engines run it."""
        self._lock.give_up()

    def _record(self, pod: LocalPod) -> None:
        known = self._records.get(pod.seen.name)
        if known is None or pod.seen.attempt >= known.attempt:
            self._records[pod.seen.name] = pod.record(self.log(pod, pod.main))


class JobRegistry:
    """The jobs that this engine runs. No other engine does: it holds the lock of each until it removes it."""

    def __init__(self) -> None:
        self._jobs: dict[Key, LocalJob] = {}

    def __iter__(self) -> Iterator[LocalJob]:
        """Jobs may be added and removed meanwhile."""
        return iter(list(self._jobs.values()))

    def get(self, key: Key) -> LocalJob | None:
        return self._jobs.get(key)

    def __getitem__(self, key: Key) -> LocalJob:
        return self._jobs[key]

    def add(self, job: LocalJob) -> None:
        self._jobs[job.key] = job

    def remove(self, job: LocalJob) -> None:
        del self._jobs[job.key]
        job.release()
