"""The registry that is scraped, and the metrics that the operator records as it works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

import paddlejob
from paddlejob.engine.backend import Key
from paddlejob.engine.queue import KeyedQueue
from paddlejob.kube.events import EventRecorder
from paddlejob.kube.resource import Resource
from paddlejob.operator.informers import Informers
from paddlejob.operator.metrics import definitions as metric
from paddlejob.operator.metrics.collector import Clock, LeaderCollector
from paddlejob.operator.metrics.definitions import Metric


class Metrics:
    """With `per_job`, metrics of each active job are exposed too."""

    def __init__(self, per_job: bool = False) -> None:
        self.registry = CollectorRegistry()
        self._per_job = per_job
        self._requests = self._counter(metric.API_REQUESTS)
        self._latencies = self._histogram(metric.API_LATENCY)
        self._reconciles = self._histogram(metric.RECONCILE)
        self._waits = self._histogram(metric.QUEUE_WAIT)
        self._errors = self._counter(metric.RECONCILE_ERRORS)
        self._leader = self._gauge(metric.LEADER)
        self._gauge(metric.BUILD_INFO).labels(paddlejob.__version__).set(1)

    def observe_request(self, verb: str, resource: Resource, code: int, seconds: float) -> None:
        self._requests.labels(verb, resource.plural, str(code)).inc()
        self._latencies.labels(verb, resource.plural).observe(seconds)

    def observe_reconcile(self, waited: float, worked: float) -> None:
        self._waits.observe(max(0.0, waited))
        self._reconciles.observe(worked)

    def count_error(self) -> None:
        self._errors.inc()

    def set_leader(self, is_leader: Callable[[], bool]) -> None:
        """Ask `is_leader` whenever metrics are scraped: a lease expires by the clock alone."""
        self._leader.set_function(lambda: float(is_leader()))

    @contextmanager
    def collecting(
        self, informers: Informers, queue: KeyedQueue[Key], recorder: EventRecorder, clock: Clock = time.time
    ) -> Iterator[None]:
        """Expose jobs and caches inside the context, which is one term as leader."""
        collector = LeaderCollector(informers, queue, recorder, per_job=self._per_job, clock=clock)
        self.registry.register(collector)
        try:
            yield
        finally:
            self.registry.unregister(collector)

    def _counter(self, one: Metric) -> Counter:
        return Counter(one.name, one.help, one.labels, registry=self.registry)

    def _gauge(self, one: Metric) -> Gauge:
        return Gauge(one.name, one.help, one.labels, registry=self.registry)

    def _histogram(self, one: Metric) -> Histogram:
        return Histogram(one.name, one.help, one.labels, buckets=one.buckets, registry=self.registry)
