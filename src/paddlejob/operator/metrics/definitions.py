"""All metrics of the operator: name, type, labels, help and buckets. Nothing else names a metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric under the name that a query uses; the name of a counter ends in _total."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    per_job: bool = False
    """Exposed with --job-metrics only: its number of time series grows with the number of jobs."""

    @property
    def series(self) -> tuple[str, ...]:
        """The names of the time series of this metric."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)

    def __str__(self) -> str:
        return self.name


MILLISECONDS_TO_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""One step of a job takes milliseconds, and seconds while it creates hundreds of pods."""
UP_TO_A_TIMEOUT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""A request is given up after 30 s."""

BUILD_INFO = Metric("paddlejob_build_info", Kind.GAUGE, "The version of the operator; always 1.", ("version",))
LEADER = Metric("paddlejob_leader", Kind.GAUGE, "1 if this replica is the leader, 0 on standby.")

JOBS = Metric("paddlejob_jobs", Kind.GAUGE, "Jobs by phase.", ("phase",))
QUEUE_DEPTH = Metric("paddlejob_queue_depth", Kind.GAUGE, "Jobs waiting in the queue.")
QUEUE_WAIT = Metric(
    "paddlejob_queue_wait_seconds",
    Kind.HISTOGRAM,
    "Time a job waited in the queue once it was due.",
    buckets=MILLISECONDS_TO_SECONDS,
)
RECONCILE = Metric(
    "paddlejob_reconcile_seconds",
    Kind.HISTOGRAM,
    "Duration of one reconciliation of a job.",
    buckets=MILLISECONDS_TO_SECONDS,
)
RECONCILE_ERRORS = Metric(
    "paddlejob_reconcile_errors_total", Kind.COUNTER, "Reconciliations that ended in an error and are retried."
)

API_REQUESTS = Metric(
    "paddlejob_api_requests_total",
    Kind.COUNTER,
    "Requests sent to the API server. Code 0 means that no response arrived.",
    ("verb", "resource", "code"),
)
API_LATENCY = Metric(
    "paddlejob_api_request_seconds",
    Kind.HISTOGRAM,
    "Time until the API server responded to a request; of a watch, until it was accepted.",
    ("verb", "resource"),
    UP_TO_A_TIMEOUT,
)

INFORMER_OBJECTS = Metric("paddlejob_informer_objects", Kind.GAUGE, "Objects in the cache.", ("resource",))
INFORMER_AGE = Metric(
    "paddlejob_informer_age_seconds",
    Kind.GAUGE,
    "Time since the API server last sent something about the resource; about a minute if nothing changes.",
    ("resource",),
)
INFORMER_FAILING = Metric(
    "paddlejob_informer_failing_seconds",
    Kind.GAUGE,
    "For how long the list or watch of a resource has failed. Its objects are those last seen.",
    ("resource",),
)
INFORMER_ERRORS = Metric(
    "paddlejob_informer_errors_total", Kind.COUNTER, "Lists and watches of a resource that failed.", ("resource",)
)
EVENTS_DROPPED = Metric(
    "paddlejob_events_dropped_total", Kind.COUNTER, "Kubernetes events about jobs that could not be written."
)

JOB_LABELS = ("namespace", "job")
GOODPUT = Metric(
    "paddlejob_goodput_ratio",
    Kind.GAUGE,
    "Part of the time since the job was started in which it went beyond its highest step.",
    JOB_LABELS,
    per_job=True,
)
JOB_STEP = Metric("paddlejob_job_step", Kind.GAUGE, "The last step of the current attempt.", JOB_LABELS, per_job=True)
JOB_STEPS = Metric(
    "paddlejob_job_steps", Kind.GAUGE, "The number of steps of the whole training.", JOB_LABELS, per_job=True
)
JOB_RESTARTS = Metric(
    "paddlejob_job_restarts", Kind.GAUGE, "Restarts of the job after a failure.", JOB_LABELS, per_job=True
)
JOB_OUTPUT_AGE = Metric(
    "paddlejob_job_output_age_seconds",
    Kind.GAUGE,
    "Time since a worker of a running job last printed a line, as far as status.progress says.",
    JOB_LABELS,
    per_job=True,
)

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
