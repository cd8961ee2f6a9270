"""Reads the logs of running jobs beside reconciling: their progress, and whether any worker still prints.

Worker 0 of each job is read every 10 s, and less often the more jobs run, and once more before an attempt ends. Other
workers are read only in jobs with stallSeconds, once worker 0 has been silent for half of that. There are never more
than 20 requests in a second.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from paddlejob.api.template import training_container
from paddlejob.api.types import PaddleJob, Phase, ProgressSpec, Role
from paddlejob.delays import exponential_delay
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
from paddlejob.operator.last_reads import LastReads
from paddlejob.operator.pattern_budget import PatternBudget
from paddlejob.plan import Pod, PodPhase, names
from paddlejob.plan.agents import attempt_of, built_attempt
from paddlejob.plan.size import first_worker
from paddlejob.plan.world import NODE_LOST, LogReading

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


class Denials:
    """Namespaces in which reading logs is forbidden: how often in a row it was, and when to try again."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[str, tuple[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def pause(self, namespace: str) -> float:
        """Seconds for which logs of this namespace are not read; 0 if they are."""
        return max(0.0, self._known.get(namespace, (0, 0.0))[1] - self._monotonic())

    def deny(self, namespace: str) -> None:
        if not self.pause(namespace):
            times = self._known.get(namespace, (0, 0.0))[0] + 1
            pause = exponential_delay(times, FIRST_DENIED, LONGEST_DENIED)
            self._known[namespace] = times, self._monotonic() + pause

    def permit(self, namespace: str) -> None:
        self._known.pop(namespace, None)


def read_interval(jobs: int) -> float:
    """Seconds between two reads of a job; varied, so that jobs that began together are not read together."""
    return max(READ_EVERY, jobs / AVERAGE_RATE) * random.uniform(1.0, 1.2)


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
        self._last_reads = LastReads(monotonic)
        self._denials = Denials(monotonic)
        self._warned: set[str] = set()
        """The uids of jobs that have an event about stallSeconds."""
        self._budgets: dict[str, PatternBudget] = {}
        """By the uid of a job that exists."""
        informers.jobs.add_event_handler(self._on_job)

    async def run(self) -> None:
        await self._queue.run(self._turn, MOST_IN_FLIGHT)

    def is_unread(self, job: PaddleJob) -> bool:
        """Whether the attempt may have printed what was not read yet, and can be read."""
        readable = self._enabled and _is_readable(job) and not self._denials.pause(job.namespace)
        return readable and not self._last_reads.was_made(job.metadata.uid, job.status.attempt)

    def read_once_more(self, job: PaddleJob) -> None:
        """Before the attempt ends; the job is enqueued when it is done, and it is given up after some seconds."""
        self._last_reads.ask(job.metadata.uid, job.status.attempt)
        self._queue.add((job.namespace, job.name))

    def _on_job(self, old: Job | None, new: Job | None) -> None:
        """Begin with a job that has begun to train, and end with one that no longer does."""
        job = new or old
        key = (job.namespace, job.name) if job else ("", "")
        if isinstance(old, PaddleJob) and (not isinstance(new, PaddleJob) or new.metadata.uid != old.metadata.uid):
            self._budgets.pop(old.metadata.uid, None)
            self._last_reads.forget(old.metadata.uid)
        if _is_training(new) != self._is_followed(key, new):
            self._queue.add(key)

    def _is_followed(self, key: Key, job: Job | None) -> bool:
        """Whether this attempt of this very job is followed, as its spec.progress asks for now."""
        known = self._logs.get(key)
        if known is None or not isinstance(job, PaddleJob):
            return known is not None
        attempt = known.follower.attempt
        return (known.uid, attempt, known.spec) == (job.metadata.uid, job.status.attempt, job.spec.progress)

    async def _turn(self, key: Key) -> None:
        job = self._informers.jobs.get(*key)
        if not isinstance(job, StoredJob) or not (_is_training(job) or self._is_last(job)):
            self._forget(key)
            return
        if not self._enabled:
            self._warn(job, DISABLED)
            return
        work_on(key, job.status.attempt)
        if not self._is_followed(key, job):
            self._forget(key)
            budget = self._budgets.setdefault(job.metadata.uid, PatternBudget(self._source.monotonic))
            self._logs[key] = JobLog(job, self._source, budget)
        pause = await self._read(key, job)
        self._queue.add_after(key, SOON if self._is_last(job) else pause)

    def _is_last(self, job: PaddleJob) -> bool:
        return _is_readable(job) and self._last_reads.is_asked_for(job.metadata.uid, job.status.attempt)

    def _forget(self, key: Key) -> None:
        known = self._logs.pop(key, None)
        if known is not None:
            self.readings.pop(known.uid, None)
            self._warned.discard(known.uid)

    async def _read(self, key: Key, job: StoredJob) -> float:
        """Read what is new, and return in how many seconds to read again."""
        known, regular = self._logs[key], read_interval(len(self._logs))
        began, uid, attempt = self._source.monotonic(), job.metadata.uid, job.status.attempt
        if pause := self._denials.pause(job.namespace):
            self._warn(job, DENIED)
            return pause
        try:
            await self._read_workers(known, job)
        except Forbidden as error:
            self._deny(job, error)
            return self._denials.pause(job.namespace)
        except KubeError as error:
            log.info("job %s: its log cannot be read for now: %s", "/".join(key), error)
            if self._last_reads.finish(uid, attempt, began, again=known.was_read):
                self._enqueue(key)
            return regular
        self._denials.permit(job.namespace)
        reading = known.reading
        changed = self._logs.get(key) is known and reading != self.readings.get(known.uid)
        if changed:
            self.readings[known.uid] = reading
        if self._last_reads.finish(uid, attempt, began) or changed:
            self._enqueue(key)
        due = known.due(job.spec.stallSeconds)
        return regular if due is None else min(regular, max(due, SOON))

    async def _read_workers(self, known: JobLog, job: StoredJob) -> None:
        worker = job.whole().spec.roles[Role.WORKER]
        container = str(training_container(worker.template["spec"]["containers"])["name"])
        most = min(max(LINES_OF_ALL // max(1, len(self._logs)), FEWEST_LINES), MOST_LINES)
        first, moment = self._first_worker(job), self._source.monotonic()
        last, limit = self._is_last(job), job.spec.stallSeconds
        if first is not None:
            await known.read(first, job.namespace, container, MOST_LINES if last else most)
        if limit is not None and not last:
            found = self._informers.pods.by_index((job.namespace, job.metadata.uid))
            pods = [one.value for one in found if one.value is not None]
            workers = running_workers(pods, built_attempt(job.status))
            await known.listen(workers, job.namespace, container, limit, moment)

    def _first_worker(self, job: PaddleJob) -> Pod | None:
        """The one with rank 0, once its program has started. Looked up by name: a job may have thousands of pods."""
        found = self._informers.pods.get(job.namespace, names.pod(job, Role.WORKER, first_worker(job)))
        pod = found.value if found and found.owner == job.metadata.uid else None
        if pod is None or attempt_of(pod.attempt, job.status) != job.status.attempt or pod.reason == NODE_LOST:
            return None
        return pod if pod.phase is PodPhase.RUNNING or pod.ended else None

    def _deny(self, job: PaddleJob, error: Forbidden) -> None:
        if not self._denials:
            log.warning("%s: %s", DENIED, error.message)
        self._denials.deny(job.namespace)
        self._warn(job, DENIED)

    def _warn(self, job: PaddleJob, message: str) -> None:
        """Only a job that asks for hang detection misses something that its author relies on."""
        uid = job.metadata.uid
        if job.spec.stallSeconds is not None and uid not in self._warned:
            self._warned.add(uid)
            self._record(job, "LogsNotRead", message)

    def _record(self, job: PaddleJob, reason: str, message: str) -> None:
        self._recorder.record(
            PADDLEJOBS,
            job.namespace,
            job.name,
            job.metadata.uid,
            event_type="Warning",
            reason=reason,
            message=message,
        )


def _is_training(job: Job | None) -> bool:
    """Whether its log is worth reading, and its author wants it read."""
    return isinstance(job, PaddleJob) and job.status.phase is Phase.RUNNING and _may_be_read(job)


def _is_readable(job: PaddleJob) -> bool:
    """Whether its programs may have printed something; some end before the job is Running."""
    begun = 0 < job.status.attempt == job.status.publishedAttempt and not job.status.finished
    return begun and _may_be_read(job)


def _may_be_read(job: PaddleJob) -> bool:
    if job.metadata.deletionTimestamp or job.spec.worker is None or not job.spec.is_ours:
        return False
    return (job.spec.progress or ProgressSpec()).enabled


def _log_failure(key: Key, error: Exception) -> None:
    log.error("job %s: unexpected error while reading its log; retrying", "/".join(key), exc_info=error)
