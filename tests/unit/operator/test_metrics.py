"""The operator's metrics: each is defined once, and what is exposed is what is defined."""

from __future__ import annotations

import re
import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from paddlejob.api.types import Phase
from paddlejob.engine.queue import KeyedQueue
from paddlejob.errors import NotFound
from paddlejob.kube.events import MAX_PENDING, EventRecorder
from paddlejob.kube.resource import PODS
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.operator.informers import Informers
from paddlejob.operator.metrics import Metrics
from paddlejob.operator.metrics import definitions as metric
from paddlejob.operator.metrics.definitions import METRICS, Kind
from paddlejob.plan import times
from tests.support.scripted_cluster import Object, Serve, failure
from tests.support.waiting import until
from tests.unit.operator.stage import KEY, Stage, staged, stored_job

OUTPUT_AGE = 'paddlejob_job_output_age_seconds{job="mnist",namespace="default"}'


def exposed(stage: Stage, metrics: Metrics) -> dict[str, float]:
    """Every sample that Prometheus would read, by its name and labels."""
    with metrics.collecting(stage.informers, KeyedQueue(), stage.recorder):
        return samples(metrics.registry)


def samples(registry: CollectorRegistry) -> dict[str, float]:
    families = text_string_to_metric_families(generate_latest(registry).decode())
    found: dict[str, float] = {}
    for sample in (sample for family in families for sample in family.samples):
        labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
        found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def training(name: str = "mnist", **progress: object) -> tuple[str, Object]:
    _, made = stored_job(workers=1)
    status = {"phase": "Running", "attempt": 2, "restarts": 1, "progress": progress}
    about = {**made["metadata"], "name": name, "uid": f"uid-{name}"}
    return f"default/paddlejobs/{name}", {**made, "metadata": about, "status": status}


async def test_what_is_exposed_is_what_is_defined(serve: Serve):
    ago = times.format(time.time() - 100)
    steps = {"step": 5, "totalSteps": 9, "highestStep": 5, "countedSince": ago, "lastOutputTime": ago}
    async with staged(serve, training(**steps)) as stage:
        stage.informers.pods.failing_since = time.monotonic()
        metrics = Metrics(per_job=True)
        metrics.observe_request("get", PODS, 200, 0.1)
        with metrics.collecting(stage.informers, KeyedQueue(), stage.recorder):
            text = generate_latest(metrics.registry).decode()
    families = {one.name: one for one in text_string_to_metric_families(text) if not one.name.endswith("_created")}
    named = {one.name.removesuffix("_total"): one for one in METRICS}
    assert families.keys() == named.keys()
    for name, family in families.items():
        assert (family.type, family.documentation) == (named[name].kind, named[name].help)
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert labels == set(named[name].labels), name


@pytest.mark.parametrize("one", METRICS, ids=str)
def test_a_definition_follows_the_conventions_of_prometheus(one: metric.Metric):
    assert re.fullmatch(r"paddlejob_[a-z_]+", one.name)
    assert one.name.endswith("_total") == (one.kind is Kind.COUNTER)
    assert list(one.buckets) == sorted(set(one.buckets))
    assert bool(one.buckets) == (one.kind is Kind.HISTOGRAM)
    assert one.help.endswith(".")
    assert one.per_job == ("job" in one.labels)


async def test_metrics_of_each_job_are_exposed_only_if_they_are_wanted(serve: Serve):
    ago = times.format(time.time() - 100)
    jobs = [
        training(step=5, totalSteps=9, lastOutputTime=ago),
        training("silent"),
        ("default/paddlejobs/new", stored_job()[1]),
    ]
    async with staged(serve, *jobs) as stage:
        assert not [name for name in exposed(stage, Metrics()) if 'job="' in name]
        found = {name: value for name, value in exposed(stage, Metrics(per_job=True)).items() if 'job="' in name}
    assert 99 <= found.pop(OUTPUT_AGE) < 1000
    assert found == {
        'paddlejob_job_step{job="mnist",namespace="default"}': 5,
        'paddlejob_job_steps{job="mnist",namespace="default"}': 9,
        'paddlejob_job_restarts{job="mnist",namespace="default"}': 1,
        'paddlejob_job_restarts{job="silent",namespace="default"}': 1,
    }


async def test_a_status_that_cannot_be_read_hides_no_metric_of_another_job(serve: Serve):
    jobs = [training("odd", step=1, lastOutputTime="yesterday"), training(step=5)]
    async with staged(serve, *jobs) as stage:
        found = exposed(stage, Metrics(per_job=True))
    assert found['paddlejob_job_step{job="mnist",namespace="default"}'] == 5
    assert found['paddlejob_job_step{job="odd",namespace="default"}'] == 1
    assert not [name for name in found if "output_age" in name]


@pytest.mark.parametrize(
    ("phase", "age"), [("Running", 100), ("Restarting", None), ("Pending", None), ("Starting", None)]
)
async def test_a_job_is_silent_only_while_it_runs(serve: Serve, phase: str, age: int | None):
    last, began = times.format(time.time() - 9000), times.format(time.time() - 100)
    key, made = training(step=5, lastOutputTime=last)
    condition = {"type": "Running", "status": str(phase == "Running"), "lastTransitionTime": began}
    made["status"] |= {"phase": phase, "conditions": [condition]}
    async with staged(serve, (key, made)) as stage:
        found = exposed(stage, Metrics(per_job=True)).get(OUTPUT_AGE)
    assert found is None if age is None else found is not None and age - 1 <= found < 1000


async def test_metrics_of_a_job_of_another_controller_are_those_of_another_cluster(serve: Serve):
    key, made = training(step=5)
    made["spec"] |= {"managedBy": "kueue.x-k8s.io/multikueue"}
    async with staged(serve, (key, made)) as stage:
        assert not [name for name in exposed(stage, Metrics(per_job=True)) if 'job="' in name]


async def test_the_caches_tell_their_size_and_age_and_how_often_they_failed(serve: Serve):
    async with staged(serve, stored_job()) as stage:
        before = exposed(stage, Metrics())
        assert before['paddlejob_informer_objects{resource="paddlejobs.batch.paddlepaddle.org"}'] == 1
        assert before['paddlejob_informer_errors_total{resource="pods"}'] == 0
        stage.informers.pods.last_contact = time.monotonic() - 500
        assert exposed(stage, Metrics())['paddlejob_informer_age_seconds{resource="pods"}'] >= 500
        stage.api.answers["GET", "pods"] = failure(500, "InternalError")
        stage.api.watches_end.set()
        await until(lambda: exposed(stage, Metrics())['paddlejob_informer_errors_total{resource="pods"}'])
        stage.informers.pods.absent = True
        assert not [name for name in exposed(stage, Metrics()) if 'resource="pods"' in name and "failing" not in name]


class NoEvents:
    """A client whose events are rejected: the namespace is gone."""

    async def create(self, *_: object) -> None:
        raise NotFound(404, "NotFound", "namespaces ml not found")


async def test_events_that_are_dropped_or_rejected_are_counted():
    recorder = EventRecorder(NoEvents(), "test")  # type: ignore[arg-type]
    for number in range(MAX_PENDING + 2):
        recorder.record(PADDLEJOBS, "ml", f"job-{number}", "uid", reason="Failed", message="no")
    assert recorder.dropped == 2
    await recorder.flush()
    assert recorder.dropped == MAX_PENDING + 2


async def test_latency_is_observed_for_each_verb_and_resource():
    metrics = Metrics()
    for seconds in (0.007, 0.2, 60.0):
        metrics.observe_request("create", PODS, 201, seconds)
    found = samples(metrics.registry)
    assert found['paddlejob_api_requests_total{code="201",resource="pods",verb="create"}'] == 3
    of_creates = 'resource="pods",verb="create"}'
    buckets = {le: found[f'paddlejob_api_request_seconds_bucket{{le="{le}",{of_creates}'] for le in ("0.01", "30.0")}
    assert buckets == {"0.01": 1, "30.0": 2}, "one took longer than a request may"


async def test_the_leader_is_who_holds_the_lease_when_metrics_are_scraped():
    metrics, holds = Metrics(), [True]
    metrics.set_leader(lambda: holds[0])
    assert samples(metrics.registry)["paddlejob_leader"] == 1
    holds[0] = False
    assert samples(metrics.registry)["paddlejob_leader"] == 0


def unnamed(status: Object) -> Object:
    return {**stored_job()[1], "metadata": {"namespace": "default"}, "status": status}


async def test_jobs_are_counted_by_phase_also_those_that_are_new_or_unreadable(serve: Serve):
    phases = {"a": {}, "b": {"phase": "Running"}, "c": {"phase": "Running"}, "d": {"phase": "Odd"}}
    jobs = [(f"default/paddlejobs/{name}", unnamed(status)) for name, status in phases.items()]
    async with staged(serve, *jobs) as stage:
        metrics, queue = Metrics(), KeyedQueue()
        queue.add_after(KEY, 3600)
        with metrics.collecting(Informers(stage.client, None), queue, stage.recorder):
            assert samples(metrics.registry)['paddlejob_jobs{phase="Running"}'] == 0
        with metrics.collecting(stage.informers, queue, stage.recorder):
            found = samples(metrics.registry)
        counted = {name: value for name, value in found.items() if value and name.startswith("paddlejob_jobs{")}
        assert counted == {
            'paddlejob_jobs{phase="Running"}': 2,
            'paddlejob_jobs{phase="Unseen"}': 1,
            'paddlejob_jobs{phase="Unreadable"}': 1,
        }
        assert sum(name.startswith("paddlejob_jobs{") for name in found) == len(Phase) + 2, "also those without jobs"
        assert found["paddlejob_queue_depth"] == 1
        assert not [name for name in samples(metrics.registry) if "paddlejob_jobs" in name], "not after its term"


async def test_goodput_is_only_counted_while_a_job_may_train(serve: Serve):
    since = times.format(time.time() - 100)
    progress = {"step": 5, "highestStep": 5, "productiveSeconds": 80, "countedSince": since}
    jobs = []
    for phase in ("Running", "Suspended", "Completed", "Failed", "Restarting"):
        status = {"phase": phase, "attempt": 1, "startTime": since, "progress": progress, "goodput": 80}
        ended = {"completionTime": since} if phase in ("Completed", "Failed") else {}
        jobs.append((f"default/paddlejobs/{phase.lower()}", unnamed(status | ended)))
    async with staged(serve, *jobs) as stage:
        found = {name for name in exposed(stage, Metrics(per_job=True)) if "goodput_ratio{" in name}
    assert found == {
        'paddlejob_goodput_ratio{job="restarting",namespace="default"}',
        'paddlejob_goodput_ratio{job="running",namespace="default"}',
    }


def test_a_reconciliation_that_began_early_has_not_waited():
    metrics = Metrics()
    metrics.observe_reconcile(-1.0, 2.0)
    metrics.count_error()
    found = samples(metrics.registry)
    assert (found["paddlejob_queue_wait_seconds_sum"], found["paddlejob_reconcile_seconds_sum"]) == (0, 2)
    assert found["paddlejob_reconcile_errors_total"] == 1
