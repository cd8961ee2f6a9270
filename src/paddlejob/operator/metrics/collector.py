"""What is read from the informers and the queue when metrics are scraped."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.kube.events import EventRecorder
from paddlejob.objects.transform import UnreadableJob
from paddlejob.operator.informers import Informers
from paddlejob.operator.metrics import definitions as metric
from paddlejob.operator.metrics.definitions import Kind, Metric
from paddlejob.plan import progress, times

Family = GaugeMetricFamily | CounterMetricFamily
Clock = Callable[[], float]
Value = Callable[[Status, float], float | None]
UNSEEN, UNREADABLE = "Unseen", "Unreadable"
PHASES = (*(phase.value for phase in Phase), UNSEEN, UNREADABLE)
"""Each is exposed, at zero too: an alert on a phase must not miss the first job in it."""


class LeaderCollector(Collector):
    """Metrics of one term as leader."""

    def __init__(
        self, informers: Informers, queue: KeyedQueue[Key], recorder: EventRecorder, *, per_job: bool, clock: Clock
    ) -> None:
        self._informers = informers
        self._queue = queue
        self._recorder = recorder
        self._per_job = per_job
        self._clock = clock

    def collect(self) -> Iterable[Family]:
        yield self._jobs()
        yield _filled(metric.QUEUE_DEPTH, [((), self._queue.depth)])
        yield _filled(metric.EVENTS_DROPPED, [((), self._recorder.dropped)])
        yield from self._caches()
        if self._per_job:
            yield from self._each_job()

    def _jobs(self) -> Family:
        tally = Tally(_phase(job) for job in self._informers.jobs if isinstance(job, UnreadableJob) or job.spec.is_ours)
        return _filled(metric.JOBS, [((phase,), tally[phase]) for phase in PHASES])

    def _caches(self) -> Iterable[Family]:
        served = {str(one.resource): one for one in self._informers if not one.absent}
        now = time.monotonic()
        yield _filled(metric.INFORMER_OBJECTS, [((name,), len(one)) for name, one in served.items()])
        ages = [((name,), now - one.last_contact) for name, one in served.items() if one.synced.is_set()]
        yield _filled(metric.INFORMER_AGE, ages)
        failing = [((str(resource),), seconds) for resource, seconds in self._informers.failing.items()]
        yield _filled(metric.INFORMER_FAILING, failing)
        yield _filled(metric.INFORMER_ERRORS, [((name,), one.errors) for name, one in served.items()])

    def _each_job(self) -> Iterable[Family]:
        now = self._clock()
        ours = [job for job in self._informers.jobs if isinstance(job, PaddleJob) and job.spec.is_ours]
        active = [job for job in ours if _is_active(job.status)]
        for one, value in PER_JOB.items():
            values = [((job.namespace, job.name), _if_readable(value, job.status, now)) for job in active]
            yield _filled(one, [(labels, found) for labels, found in values if found is not None])


def _filled(one: Metric, values: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    make = CounterMetricFamily if one.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(one.name, one.help, labels=one.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _if_readable(value: Value, status: Status, now: float) -> float | None:
    """Others may write to the status of a job, which then has an event about it; all other metrics are served."""
    try:
        return value(status, now)
    except ValueError:
        return None


def _phase(job: PaddleJob | UnreadableJob) -> str:
    return UNREADABLE if isinstance(job, UnreadableJob) else job.status.phase or UNSEEN


def _is_active(status: Status) -> bool:
    return status.phase is not None and not status.finished and status.phase is not Phase.SUSPENDED


def _goodput(status: Status, now: float) -> float | None:
    percent = progress.goodput(status, now)
    return None if percent is None else percent / 100


def _output_age(status: Status, now: float) -> float | None:
    """A job that waits for its pods prints nothing, and does not hang."""
    last, running = status.progress.lastOutputTime if status.progress else "", status.condition(Phase.RUNNING)
    if status.phase is not Phase.RUNNING or not last:
        return None
    began = times.parse(running.lastTransitionTime) if running else 0.0
    return max(0.0, now - max(times.parse(last), began))


PER_JOB: dict[Metric, Value] = {
    metric.GOODPUT: _goodput,
    metric.JOB_STEP: lambda status, now: status.progress.step if status.progress else None,
    metric.JOB_STEPS: lambda status, now: status.progress.totalSteps if status.progress else None,
    metric.JOB_RESTARTS: lambda status, now: status.restarts,
    metric.JOB_OUTPUT_AGE: _output_age,
}
"""The value of each metric of a job that has neither ended nor been suspended."""
