"""The operator's metrics for Prometheus."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.kube.resource import Resource
from paddlejob.objects.transform import UnreadableJob
from paddlejob.operator.informers import Informers
from paddlejob.plan import progress


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._jobs: _JobCollector | None = None
        self._requests = Counter(
            "paddlejob_api_requests",
            "Requests sent to the API server.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self._reconciles = Histogram(
            "paddlejob_reconcile_seconds", "Duration of one reconciliation of a job.", registry=self.registry
        )
        self._waits = Histogram(
            "paddlejob_queue_wait_seconds", "Time a job waited in the queue once it was due.", registry=self.registry
        )
        self._errors = Counter(
            "paddlejob_reconcile_errors", "Reconciliations that ended in an error.", registry=self.registry
        )

    def count_request(self, verb: str, resource: Resource, code: int) -> None:
        self._requests.labels(verb, resource.plural, str(code)).inc()

    def observe_reconcile(self, waited: float, worked: float) -> None:
        self._waits.observe(max(0.0, waited))
        self._reconciles.observe(worked)

    def count_error(self) -> None:
        self._errors.inc()

    def collect_from(self, informers: Informers, queue: KeyedQueue[Key]) -> None:
        """Count the jobs of these informers from now on, instead of those of an earlier term as leader."""
        if self._jobs:
            self.registry.unregister(self._jobs)
        self._jobs = _JobCollector(informers, queue)
        self.registry.register(self._jobs)


class _JobCollector(Collector):
    """Reads the informers whenever metrics are scraped."""

    def __init__(self, informers: Informers, queue: KeyedQueue[Key]) -> None:
        self._informers = informers
        self._queue = queue

    def collect(self) -> Iterable[GaugeMetricFamily]:
        by_phase = GaugeMetricFamily("paddlejob_jobs", "Jobs by phase.", labels=["phase"])
        tally = Tally(_phase(job) for job in self._informers.jobs)
        for phase, count in sorted(tally.items()):
            by_phase.add_metric([phase], count)
        yield by_phase
        depth = GaugeMetricFamily("paddlejob_queue_depth", "Jobs waiting in the queue.")
        depth.add_metric([], self._queue.depth)
        yield depth
        failing = GaugeMetricFamily(
            "paddlejob_informer_failing_seconds",
            "For how long the list or watch of a resource has failed. Its objects are those last seen.",
            labels=["resource"],
        )
        for resource, seconds in self._informers.failing.items():
            failing.add_metric([str(resource)], seconds)
        yield failing
        yield self._goodput()

    def _goodput(self) -> GaugeMetricFamily:
        goodput = GaugeMetricFamily(
            "paddlejob_goodput_ratio",
            "Part of the time since the job was started in which it went beyond its highest step.",
            labels=["namespace", "job"],
        )
        now = time.time()
        for job in self._informers.jobs:
            active = isinstance(job, PaddleJob) and not job.status.finished and job.status.phase is not Phase.SUSPENDED
            percent = progress.goodput(job.status, now) if isinstance(job, PaddleJob) and active else None
            if percent is not None:
                goodput.add_metric([job.namespace, job.name], percent / 100)
        return goodput


def _phase(job: PaddleJob | UnreadableJob) -> str:
    return "Unreadable" if isinstance(job, UnreadableJob) else job.status.phase or "Unseen"
