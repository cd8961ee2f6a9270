"""What a running operator does besides reconciling: events, metrics, and the objects of Kueue that it reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import generate_latest

from paddlejob.engine.queue import KeyedQueue
from paddlejob.errors import Forbidden, NotFound, Unreachable
from paddlejob.kube.resource import NODES, PODS, PRIORITY_CLASSES
from paddlejob.operator import workloads
from paddlejob.operator.informers import Informers
from paddlejob.operator.metrics import Metrics
from paddlejob.operator.workloads import Unreadable, Workloads, updated_status
from paddlejob.plan import UpdateWorkload, times
from paddlejob.plan.workload import Condition, Workload
from tests.support.builders import NOON
from tests.support.scripted_api import Object
from tests.unit.kube.conftest import Serve, serve
from tests.unit.operator.test_backend import staged, stored_job
from tests.unit.operator.test_run import operating

__all__ = ["serve"]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_events_about_a_job_reach_the_api_server(serve: Serve):
    """A job that is too large for any environment is failed with an event."""
    async with operating(serve, stored_job(workers=9_000)) as operator:
        await until(lambda: operator.api.written("POST", "events"))
        event = operator.api.written("POST", "events")[0].body
    assert (event["involvedObject"]["name"], event["type"]) == ("mnist", "Warning")


async def test_goodput_is_only_counted_while_a_job_may_train(serve: Serve):
    since = times.format(time.time() - 100)
    progress = {"step": 5, "highestStep": 5, "productiveSeconds": 80, "countedSince": since}
    jobs = []
    for phase in ("Running", "Suspended", "Completed", "Failed", "Restarting"):
        status = {"phase": phase, "attempt": 1, "startTime": since, "progress": progress, "goodput": 80}
        ended = {"completionTime": since} if phase in ("Completed", "Failed") else {}
        made = stored_job()[1]
        about = {"namespace": "default", "uid": phase}
        jobs.append((f"default/paddlejobs/{phase.lower()}", {**made, "metadata": about, "status": status | ended}))
    async with staged(serve, *jobs) as stage:
        metrics = Metrics(per_job=True)
        metrics.observe_request("get", PODS, 200, 0.1)
        metrics.observe_reconcile(-1.0, 2.0)
        metrics.count_error()
        with metrics.collecting(stage.informers, KeyedQueue(), stage.recorder):
            text = generate_latest(metrics.registry).decode().splitlines()
    gauges = [line for line in text if line.startswith("paddlejob_goodput_ratio{")]
    assert {line.partition("}")[0] for line in gauges} == {
        'paddlejob_goodput_ratio{job="restarting",namespace="default"',
        'paddlejob_goodput_ratio{job="running",namespace="default"',
    }
    assert 'paddlejob_api_requests_total{code="200",resource="pods",verb="get"} 1.0' in text
    assert "paddlejob_queue_wait_seconds_sum 0.0" in text and "paddlejob_reconcile_seconds_sum 2.0" in text
    assert "paddlejob_reconcile_errors_total 1.0" in text


class Kueue:
    """Answers reads of flavors and priority classes as a test says."""

    def __init__(self) -> None:
        self.answers: list[Object | Exception] = []

    async def get(self, resource: Any, name: str) -> Object:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_class_or_flavor_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch):
    now = [1000.0]
    monkeypatch.setattr(workloads.time, "monotonic", lambda: now[0])
    kueue: Any = Kueue()
    kueue.answers = [{"value": 1}, {"value": 2}, {"value": 3}]
    made = Workloads(kueue, Informers(kueue, None))
    assert await made._read(PRIORITY_CLASSES, "high") == {"value": 1}
    now[0] += 19
    assert await made._read(PRIORITY_CLASSES, "high") == {"value": 1}
    assert await made._read(NODES, "high") == {"value": 2}, "of another kind"
    now[0] += 2
    assert await made._read(PRIORITY_CLASSES, "high") == {"value": 3}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NotFound(404, "NotFound", "m"), "PriorityClass high does not exist; create it, or name another"),
        (Forbidden(403, "Forbidden", "m"), "PriorityClass high cannot be read; an operator of one namespace needs"),
        (Unreachable("no route"), "PriorityClass high cannot be read; retrying: no route"),
    ],
)
async def test_what_cannot_be_read_says_why(error: Exception, message: str):
    kueue: Any = Kueue()
    kueue.answers = [error, {"value": 1}]
    made = Workloads(kueue, Informers(kueue, None))
    with pytest.raises(Unreadable, match=message):
        await made._read(PRIORITY_CLASSES, "high")
    assert await made._read(PRIORITY_CLASSES, "high") == {"value": 1}, "and is tried again"


def test_a_workload_that_has_no_status_yet_gets_one():
    workload = Workload("w", "u", "1")
    action = UpdateWorkload(workload, (Condition("Finished", True, "Done", "m"),), {"worker": 1}, release=True)
    for before in ({"metadata": {"generation": 3}}, {"metadata": {"generation": 3}, "status": None}):
        assert updated_status(before, action, NOON) == {
            "conditions": [
                {
                    "type": "Finished", "status": "True", "reason": "Done", "message": "m", "observedGeneration": 3,
                    "lastTransitionTime": "2027-01-15T08:00:00Z",
                }
            ],
            "reclaimablePods": [{"name": "worker", "count": 1}],
        }  # fmt: skip
    nothing = UpdateWorkload(workload)
    assert updated_status({"metadata": {}, "status": {"admission": {}}}, nothing, NOON) == {"admission": {}}
