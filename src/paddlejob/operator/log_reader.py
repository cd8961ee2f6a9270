"""Reads the logs of running jobs beside reconciling: their progress, and whether any worker still prints.

Worker 0 of each job is read every 10 s, and less often the more jobs run. Other workers are read only in jobs with
stallSeconds, once worker 0 has been silent for that long. There are never more than 20 requests in a second.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from paddlejob.api.template import training_container
from paddlejob.api.types import PaddleJob, Phase, ProgressSpec, Role
from paddlejob.engine.backend import Key
from paddlejob.engine.log_context import work_on
from paddlejob.engine.queue import KeyedQueue
from paddlejob.errors import Forbidden, KubeError
from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.objects.stored_job import StoredJob
from paddlejob.operator.informers import Informers, Job
from paddlejob.operator.job_log import JobLog, Source, running_workers
from paddlejob.plan import Pod, PodPhase, names
from paddlejob.plan.size import first_worker
from paddlejob.plan.times import exponential_delay
from paddlejob.plan.world import LogReading

READ_EVERY = 10.0
AVERAGE_RATE = 8.0
"""Requests a second for all jobs together: with more than 80 jobs, each is read less often."""
MOST_IN_FLIGHT = 8
MOST_LINES, FEWEST_LINES = 200, 20
LINES_OF_ALL = 4000
"""Of one round through all jobs: the more jobs, the fewer lines of each are read."""
FIRST_DENIED, LONGEST_DENIED = 10.0, 300.0
"""Seconds after which a permission that is missing is tried again. An API server that has just started denies
everything for a moment, because it does not know its roles yet."""
SOON = 1.0
DISABLED = "the operator runs with --no-read-logs, so stallSeconds has no effect; start it without that option"
DENIED = (
    "the operator is not permitted to read the logs of pods, so jobs show no progress and stallSeconds has no effect; "
    "apply the operator's manifests again (`pdj install`, or deploy/v1/operator.yaml): they grant get on pods/log"
)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Denial:
    times: int
    until: float


class LogReader:
    """`readings` are by the uid of a job; `enqueue(key)` is called when one has changed."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        recorder: EventRecorder,
        enqueue: Callable[[Key], None],
        *,
        enabled: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.readings: dict[str, LogReading] = {}
        self._informers = informers
        self._recorder = recorder
        self._enqueue = enqueue
        self._enabled = enabled
        self._source = Source(client, monotonic)
        self._queue: KeyedQueue[Key] = KeyedQueue(min_interval=0.5, on_failure=_log_failure)
        self._logs: dict[Key, JobLog] = {}
        self._denied: dict[str, Denial] = {}
        """By namespace: how often in a row reading logs was forbidden, and when to try again."""
        self._warned: set[str] = set()
        """The uids of jobs that have an event about stallSeconds."""
        informers.jobs.add_event_handler(self._on_job)

    async def run(self) -> None:
        await self._queue.run(self._turn, MOST_IN_FLIGHT)

    def _on_job(self, old: Job | None, new: Job | None) -> None:
        """Begin with a job that has begun to train, and end with one that no longer does."""
        job = new or old
        key = (job.namespace, job.name) if job else ("", "")
        if _is_training(new) != self._is_followed(key, new):
            self._queue.add(key)

    def _is_followed(self, key: Key, job: Job | None) -> bool:
        """Whether this attempt of this very job is followed."""
        known = self._logs.get(key)
        if known is None or not isinstance(job, PaddleJob):
            return known is not None
        return known.uid == job.metadata.uid and known.follower.attempt == job.status.attempt

    async def _turn(self, key: Key) -> None:
        job = self._informers.jobs.get(*key)
        if not isinstance(job, StoredJob) or not _is_training(job):
            self._forget(key)
            return
        if not self._enabled:
            self._warn(job, DISABLED)
            return
        work_on(key, job.status.attempt)
        if not self._is_followed(key, job):
            self._forget(key)
            self._logs[key] = JobLog(job, self._source)
        pause = await self._read(key, job)
        self._queue.add_after(key, pause)

    def _forget(self, key: Key) -> None:
        known = self._logs.pop(key, None)
        if known is not None:
            self.readings.pop(known.uid, None)
            self._warned.discard(known.uid)

    async def _read(self, key: Key, job: StoredJob) -> float:
        """Read what is new, and return in how many seconds to read again."""
        known, regular = self._logs[key], self._interval()
        if pause := self._denied_for(job.namespace):
            self._warn(job, DENIED)
            return pause
        try:
            await self._read_workers(known, job)
        except Forbidden as error:
            self._deny(job, error)
            return self._denied_for(job.namespace)
        except KubeError as error:
            log.info("job %s: its log cannot be read for now: %s", "/".join(key), error)
            return regular
        self._denied.pop(job.namespace, None)
        reading = known.follower.reading
        if self._logs.get(key) is known and reading != self.readings.get(known.uid):
            self.readings[known.uid] = reading
            self._enqueue(key)
        due = known.due(job.spec.stallSeconds)
        return regular if due is None else min(regular, max(due, SOON))

    def _interval(self) -> float:
        """Seconds between two reads of a job; varied, so that jobs that began together are not read together."""
        return max(READ_EVERY, len(self._logs) / AVERAGE_RATE) * random.uniform(1.0, 1.2)

    async def _read_workers(self, known: JobLog, job: StoredJob) -> None:
        worker = job.whole().spec.roles[Role.WORKER]
        container = str(training_container(worker.template["spec"]["containers"])["name"])
        most = min(max(LINES_OF_ALL // max(1, len(self._logs)), FEWEST_LINES), MOST_LINES)
        first, moment = self._first_worker(job), self._source.monotonic()
        if first is not None:
            await known.read(first, job.namespace, container, most)
        limit = job.spec.stallSeconds
        if limit is not None:
            pods = [one.value for one in self._informers.pods.by_index(job.metadata.uid) if one.value is not None]
            workers = running_workers(pods, job.status.attempt)
            await known.listen(workers, job.namespace, container, limit, moment)

    def _first_worker(self, job: PaddleJob) -> Pod | None:
        """The one with rank 0, once its program has started. Looked up by name: a job may have thousands of pods."""
        found = self._informers.pods.get(job.namespace, names.pod(job, Role.WORKER, first_worker(job)))
        pod = found.value if found else None
        started = pod is not None and (pod.phase is PodPhase.RUNNING or pod.ended)
        return pod if pod is not None and started and pod.attempt == job.status.attempt else None

    def _denied_for(self, namespace: str) -> float:
        """Seconds for which logs of this namespace are not read; 0 if they are."""
        found = self._denied.get(namespace)
        return max(0.0, found.until - self._source.monotonic()) if found else 0.0

    def _deny(self, job: PaddleJob, error: Forbidden) -> None:
        if not self._denied:
            log.warning("%s: %s", DENIED, error.message)
        if not self._denied_for(job.namespace):
            before = self._denied.get(job.namespace)
            count = before.times + 1 if before else 1
            pause = exponential_delay(count, FIRST_DENIED, LONGEST_DENIED)
            self._denied[job.namespace] = Denial(count, self._source.monotonic() + pause)
        self._warn(job, DENIED)

    def _warn(self, job: PaddleJob, message: str) -> None:
        """Only a job that asks for hang detection misses something that its author relies on."""
        uid = job.metadata.uid
        if job.spec.stallSeconds is None or uid in self._warned:
            return
        self._warned.add(uid)
        self._recorder.record(
            PADDLEJOBS, job.namespace, job.name, uid, event_type="Warning", reason="LogsNotRead", message=message
        )


def _is_training(job: Job | None) -> bool:
    """Whether its log is worth reading, and its author wants it read."""
    if not isinstance(job, PaddleJob) or job.metadata.deletionTimestamp or job.spec.worker is None:
        return False
    if not job.spec.is_ours:
        return False
    return job.status.phase is Phase.RUNNING and (job.spec.progress or ProgressSpec()).enabled


def _log_failure(key: Key, error: Exception) -> None:
    log.error("job %s: unexpected error while reading its log; retrying", "/".join(key), exc_info=error)
