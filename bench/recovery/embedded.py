"""The embedded engine under faults: processes are killed and frozen, pods deleted."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any, Self

from bench.recovery.timeline import Sight
from paddlejob.local.engine import LocalEngine
from paddlejob.local.job import LocalJob
from paddlejob.local.options import RunOptions
from paddlejob.local.pod import LocalPod
from paddlejob.local.state.store import JobStore

KINDS = ("kill", "delete", "freeze")
LOOK_EVERY = 0.02


class Embedded:
    name = "embedded"
    kinds = KINDS

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.sights: dict[str, list[Sight]] = {}
        self._engine = LocalEngine(JobStore(scratch / "state"))
        self._attempts: dict[str, tuple[int, int, int]] = {}
        """When each job's status was written, its attempt, and the attempt that was published."""
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._engine.__aenter__()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for name in self.sights:
            self._kubelet(name).kill_all()
        await self._engine.__aexit__()

    def folder(self, name: str) -> Path:
        """For checkpoints and marks, as the program sees it and as this process does."""
        made = self.scratch / name
        made.mkdir(exist_ok=True)
        return made

    async def submit(self, document: dict[str, Any]) -> None:
        """Programs may write bytecode caches: without them, importing Paddle takes 4.5 s of processor time, not 1.5."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        await self._engine.submit(document, RunOptions(environment=kept))
        self.sights[document["metadata"]["name"]] = []

    async def inject(self, kind: str, name: str, index: int) -> None:
        pod = self._job(name).pods[f"{name}-worker-{index}"]
        if kind == "delete":
            self._engine.kubelet.delete(self._job(name), pod.seen.name, pod.seen.uid, grace=0)
            return
        for pid in _processes(pod):
            os.kill(pid, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)

    async def undo(self) -> None:
        """Nothing remains of a fault on this engine."""

    def status(self, name: str) -> str:
        status = self._engine.status(("default", name))
        return f"{status.phase} {status.reason}: {status.headline}" if status else "gone"

    def attempt(self, name: str) -> int:
        return self.sights[name][-1].attempt

    def _job(self, name: str) -> LocalJob:
        return self._engine.jobs["default", name]

    async def _watch(self) -> None:
        while True:
            for name, seen in self.sights.items():
                sight = self._look(name)
                if sight and (not seen or _state(seen[-1]) != _state(sight)):
                    seen.append(sight)
            await asyncio.sleep(LOOK_EVERY)

    def _look(self, name: str) -> Sight | None:
        """Only the attempt is read from a file, and only if that has changed: the programs need the processors."""
        job = self._job(name)
        file = job.folder.path / "status.json"
        if not file.exists():
            return None
        changed = file.stat().st_mtime_ns
        if self._attempts.get(name, (0, 0, 0))[0] != changed:
            status = self._engine.status(("default", name))
            if status is None:
                return None
            self._attempts[name] = (changed, status.attempt, status.publishedAttempt)
        pods = [one.seen for one in job.pods.values()]
        shown = frozenset((pod.uid, pod.attempt, not pod.ended and not pod.deleting) for pod in pods)
        _, attempt, published = self._attempts[name]
        return Sight(time.time(), attempt, published, shown)


def _state(sight: Sight) -> tuple[object, ...]:
    return (sight.attempt, sight.published, sight.pods)


def _processes(pod: LocalPod) -> list[int]:
    """The program's processes, children first; the first one of a container may only wait for them."""
    found = [pid for pid in pod.alive.values() if pid]
    for pid in found:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        found += [int(child) for child in children.read_text().split()] if children.exists() else []
    return found[::-1][:-1] or found
