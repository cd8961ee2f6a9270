"""Reads the logs of a job on this machine as they grow: its progress, and whether any worker still prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from paddlejob.api.types import PaddleJob, ProgressSpec, Role
from paddlejob.engine.log_follower import LogFollower
from paddlejob.local.job import LocalJob
from paddlejob.local.pod import LocalPod
from paddlejob.local.stacks import describe_processes
from paddlejob.logs.line import states
from paddlejob.logs.record import Recorder
from paddlejob.logs.tail import Tail, size_of
from paddlejob.plan import PodPhase, names
from paddlejob.plan.size import first_worker
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser

MOST_AT_ONCE = 256 * 1024
"""Bytes of a log that are read in one look. What a faster program prints in between is skipped."""


class LogReader:
    """Follows the logs of one job, attempt after attempt, and records the samples that it finds.

    `monotonic` must not run while the machine sleeps.
    """

    def __init__(self, job: LocalJob, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self.job = job
        self._clock = clock
        self._monotonic = monotonic
        self._following: _Following | None = None
        self._recorder: Recorder | None = None
        self.hangs = False
        """Whether all workers were silent for stallSeconds when it last looked."""
        self.quiet = False
        """Whether they were for half of that."""

    def read(self) -> LogReading | None:
        """What worker 0 has printed so far."""
        job = self.job.folder.job()
        following = self._follow(job) if job else None
        if following is None:
            return None
        self._read_first(following, self._clock())
        return following.follower.reading

    async def look(self) -> LogReading | None:
        """The same, and for how long all workers have been silent. Waits for the stacks of those that hang."""
        job = self.job.folder.job()
        following = self._follow(job) if job else None
        self.hangs = self.quiet = False
        if job is None or following is None:
            return None
        follower, now, moment = following.follower, self._clock(), self._monotonic()
        self._read_first(following, now)
        running = self._running_workers()
        if running is None:
            follower.begin_anew()
            return follower.reading
        sizes = {pod.seen.index: size_of(self.job.log(pod, pod.main)) for pod in running}
        following.listen(sizes, now, moment)
        silent, limit = moment - (follower.silent_since or moment), job.spec.stallSeconds
        self.hangs = limit is not None and silent >= limit
        self.quiet = limit is not None and silent >= limit / 2
        if self.hangs and not follower.reading.processes:
            follower.describe_processes(await asyncio.to_thread(describe_processes, running))
        follower.hear_nothing(moment)
        return follower.reading

    def _follow(self, job: PaddleJob) -> _Following | None:
        spec = job.spec.progress or ProgressSpec()
        attempt, pod = job.status.attempt, names.pod(job, Role.WORKER, first_worker(job))
        log = self.job.folder.log(attempt, pod)
        if spec.enabled and self._recorder is None:
            with suppress(OSError):
                self._recorder = Recorder(self.job.folder.path, job.name, spec)
        if not spec.enabled or job.status.finished or attempt == 0:
            self._following = None
        elif self._following is None or self._following.log != log:
            highest = job.status.progress.highestStep if job.status.progress else None
            self._following = _Following(LogFollower(attempt, Parser(spec), highest), log, pod)
        return self._following

    def _read_first(self, following: _Following, now: float) -> None:
        """Take the lines that worker 0 has printed since the last look, and the newest state of a progress bar.

        A bar begins with a carriage return, so its newest state does not end before it is drawn again. Such a state
        may not be complete and is not recorded; a last line without an end is, once the worker has ended.
        """
        tail, follower, before = following.tail, following.follower, following.tail.offset
        lines = tail.read().lines
        pod = self.job.pods.get(following.pod)
        drawn = tail.take_rest() if pod and pod.seen.ended else tail.take_states()
        found = (state.decode(errors="replace") for line in [*lines, drawn] for state in states(line))
        samples = follower.feed((now, text) for text in found)
        if drawn:
            follower.parse(now, tail.unfinished.decode(errors="replace"))
        if tail.offset != before:
            follower.printed(now)
        with suppress(OSError):  # A full disk is reported by the job itself.
            if self._recorder:
                self._recorder.append(samples)

    def _running_workers(self) -> list[LocalPod] | None:
        """Workers that have not ended; None unless every pod that has not ended runs."""
        pods = [pod for pod in self.job.pods.values() if not pod.seen.ended]
        if not all(pod.seen.phase is PodPhase.RUNNING and not pod.seen.deleting for pod in pods):
            return None
        return [pod for pod in pods if pod.seen.role is Role.WORKER] or None


@dataclass
class _Following:
    follower: LogFollower
    log: Path
    """Of the worker with rank 0."""
    pod: str
    sizes: dict[int, int] = field(default_factory=dict)
    """Of the logs of all workers, by index."""

    def __post_init__(self) -> None:
        self.tail = Tail(self.log, first=MOST_AT_ONCE, most=MOST_AT_ONCE)

    def listen(self, sizes: dict[int, int], now: float, moment: float) -> None:
        """Compare the sizes of the workers' logs with those of the last look."""
        grown = any(size != self.sizes.get(index, 0) for index, size in sizes.items())
        self.sizes |= sizes
        if grown or self.follower.silent_since is None:
            self.follower.hear(moment)
        if grown:
            self.follower.printed(now)
