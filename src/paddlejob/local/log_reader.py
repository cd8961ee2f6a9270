"""Reads the logs of a job on this machine as they grow: its progress, and whether any worker still prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from paddlejob.api.types import PaddleJob, ProgressSpec, Role
from paddlejob.engine.log_follower import LogFollower
from paddlejob.local.kubelet import Kubelet
from paddlejob.local.pod import LocalPod
from paddlejob.local.stacks import describe_processes
from paddlejob.plan import PodPhase, names
from paddlejob.plan.size import first_worker
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser

MOST_AT_ONCE = 256 * 1024
"""Bytes of a log that are read in one look. What a faster program prints in between is skipped."""
MOST_UNFINISHED = 16 * 1024


class LogReader:
    """Follows the logs of one job, attempt after attempt. `monotonic` must not run while the machine sleeps."""

    def __init__(self, kubelet: Kubelet, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self.kubelet = kubelet
        self._clock = clock
        self._monotonic = monotonic
        self._following: _Following | None = None
        self.hangs = False
        """Whether all workers were silent for stallSeconds when it last looked."""

    def read(self) -> LogReading | None:
        """What worker 0 has printed so far."""
        job = self.kubelet.objects.folder.job()
        following = self._follow(job) if job else None
        if following is None:
            return None
        following.read_first(self._clock())
        return following.follower.reading

    async def look(self) -> LogReading | None:
        """The same, and for how long all workers have been silent. Waits for the stacks of those that hang."""
        job = self.kubelet.objects.folder.job()
        following = self._follow(job) if job else None
        self.hangs = False
        if job is None or following is None:
            return None
        follower, now, moment = following.follower, self._clock(), self._monotonic()
        following.read_first(now)
        running = self._running_workers()
        if running is None:
            follower.begin_anew()
            return follower.reading
        sizes = {pod.seen.index: _size(self.kubelet.runtime.log(pod, pod.main)) for pod in running}
        following.listen(sizes, now, moment)
        silent, limit = moment - (follower.silent_since or moment), job.spec.stallSeconds
        self.hangs = limit is not None and silent >= limit
        if self.hangs and not follower.reading.processes:
            follower.describe_processes(await asyncio.to_thread(describe_processes, running))
        follower.hear_nothing(moment)
        return follower.reading

    def _follow(self, job: PaddleJob) -> _Following | None:
        spec = job.spec.progress or ProgressSpec()
        attempt = job.status.attempt
        log = self.kubelet.objects.folder.log(attempt, names.pod(job, Role.WORKER, first_worker(job)))
        if not spec.enabled or job.status.finished or attempt == 0:
            self._following = None
        elif self._following is None or self._following.log != log:
            highest = job.status.progress.highestStep if job.status.progress else None
            self._following = _Following(LogFollower(attempt, Parser(spec), highest), log)
        return self._following

    def _running_workers(self) -> list[LocalPod] | None:
        """Workers that have not ended; None unless every pod that has not ended runs."""
        pods = [pod for pod in self.kubelet.objects.pods.values() if not pod.seen.ended]
        if not all(pod.seen.phase is PodPhase.RUNNING and not pod.seen.deleting for pod in pods):
            return None
        return [pod for pod in pods if pod.seen.role is Role.WORKER] or None


@dataclass
class _Following:
    follower: LogFollower
    log: Path
    """Of the worker with rank 0."""
    offset: int = 0
    unfinished: bytes = b""
    sizes: dict[int, int] = field(default_factory=dict)
    """Of the logs of all workers, by index."""

    def read_first(self, now: float) -> None:
        """Take the lines that worker 0 has printed since the last look, and the newest state of a progress bar.

        A bar begins with a carriage return, so its newest state does not end before it is drawn again.
        """
        size = _size(self.log)
        if size == self.offset:
            return
        if size < self.offset or size - self.offset > MOST_AT_ONCE:
            self.offset, self.unfinished = max(0, size - MOST_AT_ONCE), b""
        try:
            with self.log.open("rb") as file:
                file.seek(self.offset)
                piece = file.read(size - self.offset)
        except OSError:
            return
        self.offset += len(piece)
        *whole, last = (self.unfinished + piece).replace(b"\r", b"\n").split(b"\n")
        redrawn = b"\r" in piece and piece.rfind(b"\r") > piece.rfind(b"\n")
        self.unfinished = last[-MOST_UNFINISHED:]
        self.follower.feed((now, line.decode(errors="replace")) for line in whole)
        if redrawn:
            self.follower.parse(now, self.unfinished.decode(errors="replace"))
        self.follower.printed(now)

    def listen(self, sizes: dict[int, int], now: float, moment: float) -> None:
        """Compare the sizes of the workers' logs with those of the last look."""
        grown = any(size != self.sizes.get(index, 0) for index, size in sizes.items())
        self.sizes |= sizes
        if grown or self.follower.silent_since is None:
            self.follower.hear(moment)
        if grown:
            self.follower.printed(now)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0
