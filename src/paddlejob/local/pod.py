"""A pod on this machine: what the planner sees of it, and the containers behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.api.template import training_container
from paddlejob.api.types import Role
from paddlejob.engine.backend import Key
from paddlejob.local.machine.resources import amount
from paddlejob.local.runtime.volumes import Source
from paddlejob.plan import Pod, PodPhase, times

DEFAULT_GRACE = 30.0
LAST_WORDS = 2048
ENVIRONMENT_DUMP = re.compile(r"\benv:? ?\{.*", re.MULTILINE)
Manifest = dict[str, Any]


@dataclass
class LocalPod:
    key: Key
    seen: Pod
    manifest: Manifest
    own: Path
    """Files of this pod alone; they go with it."""
    sources: dict[str, Source] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)
    """Containers that are started and not gone: the process number of their first process, or 0."""
    inits_done: int = 0
    started: float | None = None
    ended: float | None = None
    over_memory: bool = False
    stopped: bool = False
    """Ended by us."""
    removed: bool = False

    @property
    def main(self) -> Manifest:
        return training_container(self.manifest["spec"]["containers"])

    @property
    def init_containers(self) -> list[Manifest]:
        return self.manifest["spec"].get("initContainers") or []

    @property
    def initialising(self) -> bool:
        return self.inits_done < len(self.init_containers)

    @property
    def grace(self) -> float:
        given = self.manifest["spec"].get("terminationGracePeriodSeconds")
        return DEFAULT_GRACE if given is None else float(given)

    @property
    def memory_limit(self) -> float | None:
        """What all containers together may use, where each has a limit."""
        limits = [
            ((container.get("resources") or {}).get("limits") or {}).get("memory")
            for container in self.manifest["spec"]["containers"]
        ]
        return sum(amount(limit) for limit in limits if limit) if all(limits) else None

    def change(self, **changes: Any) -> None:
        self.seen = replace(self.seen, **changes)

    def record(self, log: Path) -> dict[str, Any]:
        """For other commands."""
        return {
            "name": self.seen.name,
            "uid": self.seen.uid,
            "removed": self.removed,
            "role": self.seen.role,
            "index": self.seen.index,
            "attempt": self.seen.attempt,
            "state": self._state(),
            "address": self.seen.address,
            "exitCode": self.seen.exit_code,
            "reason": self.seen.reason,
            "message": self.seen.message,
            "pid": self.alive.get(self.main["name"], 0),
            "started": self.started and times.format(self.started),
            "ended": self.ended and times.format(self.ended),
            "log": str(log),
        }

    def _state(self) -> str:
        stopped_by_us = self.stopped and (not self.seen.ended or self.seen.stopping)
        return "Stopped" if stopped_by_us and not self.alive else self.seen.phase


def new_pod(key: Key, uid: str, manifest: Manifest, own: Path, now: float) -> LocalPod:
    labels = manifest["metadata"]["labels"]
    seen = Pod(
        name=manifest["metadata"]["name"],
        uid=uid,
        role=Role(labels[contract.LABEL_ROLE]),
        index=int(labels[contract.LABEL_INDEX]),
        attempt=int(labels[contract.LABEL_ATTEMPT]),
        created=now,
        build=manifest["metadata"]["annotations"][contract.ANNOTATION_BUILD],
    )
    return LocalPod(key, seen, manifest, own)


def ended_phase(code: int) -> PodPhase:
    return PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED


def last_words(log: Path) -> str:
    """The end of a log, from the beginning of a line."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - LAST_WORDS))
            tail = file.read().decode(errors="replace")
    except OSError:
        return ""
    return without_environment((tail.partition("\n")[2] or tail if size > LAST_WORDS else tail).strip())


def without_environment(text: str) -> str:
    """Paddle's launcher prints the whole environment when a program fails; what is secret in it stays where it is."""
    return ENVIRONMENT_DUMP.sub("env {...}", text)
