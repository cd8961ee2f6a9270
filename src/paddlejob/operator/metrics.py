"""What the operator counts, for Prometheus."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from paddlejob.api.types import PaddleJob
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.kube.cache import Cache
from paddlejob.kube.resource import Resource


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._jobs: _Jobs | None = None
        self._requests = Counter(
            "paddlejob_api_requests",
            "Requests to the API server.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self._reconciles = Histogram(
            "paddlejob_reconcile_seconds", "How long a look at one job took.", registry=self.registry
        )
        self._waits = Histogram(
            "paddlejob_queue_wait_seconds", "How long a job waited for its turn.", registry=self.registry
        )
        self._errors = Counter(
            "paddlejob_reconcile_errors", "Looks at a job that ended in an error.", registry=self.registry
        )

    def request(self, verb: str, resource: Resource, code: int, seconds: float) -> None:
        self._requests.labels(verb, resource.plural, str(code)).inc()

    def turn(self, waited: float, worked: float) -> None:
        self._waits.observe(max(0.0, waited))
        self._reconciles.observe(worked)

    def failure(self) -> None:
        self._errors.inc()

    def watch(self, jobs: Cache[PaddleJob | None], queue: KeyedQueue[Key]) -> None:
        """Count these from now on, instead of those of an earlier term as leader."""
        if self._jobs:
            self.registry.unregister(self._jobs)
        self._jobs = _Jobs(jobs, queue)
        self.registry.register(self._jobs)


class _Jobs(Collector):
    """Counted when asked, from the cache."""

    def __init__(self, jobs: Cache[PaddleJob | None], queue: KeyedQueue[Key]) -> None:
        self._jobs = jobs
        self._queue = queue

    def collect(self) -> Iterable[GaugeMetricFamily]:
        by_phase = GaugeMetricFamily("paddlejob_jobs", "Jobs by phase.", labels=["phase"])
        tally = Tally(job.status.phase or "Unseen" for job in self._jobs if job is not None)
        for phase, count in sorted(tally.items()):
            by_phase.add_metric([phase], count)
        yield by_phase
        depth = GaugeMetricFamily("paddlejob_queue_depth", "Jobs that wait for their turn.")
        depth.add_metric([], self._queue.depth)
        yield depth
