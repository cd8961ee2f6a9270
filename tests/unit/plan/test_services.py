"""The Service of a job with intranet: Service: when it is created, restored and left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.plan import Kind, PodPhase, plan, times
from tests.support.builders import NOON, all_pods, created, job, world
from tests.support.model import Model

STATUS = {"phase": "Pending", "reason": "PodsNotReady", "attempt": 1, "startTime": times.format(NOON - 5)}
RUNNING = {**STATUS, "phase": "Running", "publishedAttempt": 1}
ENDED = {**STATUS, "phase": "Failed", "reason": "ProgramFailed", "completionTime": times.format(NOON)}


@pytest.mark.parametrize(
    ("status", "spec", "pods", "restored"),
    [
        (STATUS, {}, None, True),
        (RUNNING, {}, {}, True),
        (RUNNING, {"suspend": True}, {}, False),
        ({**STATUS, "attempt": 2}, {}, {"attempt": 1, "deletion_due": NOON + 20}, False),
        (ENDED, {"cleanPodPolicy": "Never"}, {"phase": PodPhase.FAILED}, False),
    ],
    ids=["with the first pods", "somebody deleted it", "suspended", "old pods are left", "finished"],
)
def test_a_missing_service_is_created_once_while_pods_need_it(
    status: dict[str, Any], spec: dict[str, Any], pods: dict[str, Any] | None, restored: bool
):
    made = job(status=status, intranet="Service", **spec)
    seen = () if pods is None else all_pods(made, **pods)
    decided = plan(made, world(*seen, environments={1: "uid"}), NOON)
    assert created(decided, Kind.SERVICE) == ["mnist-peers"] * restored
    assert created(decided) == (["mnist-worker-0", "mnist-worker-1"] if pods is None else [])


async def test_no_attempt_and_no_later_job_has_the_names_of_another():
    """A DNS cache still has the addresses of the dead, and Paddle looks its master up once."""
    model = Model(job(intranet="Service"))
    await model.settle()
    masters = [model.environments[1]["MASTER_ADDR"]]
    model.end("mnist-worker-1", 1)
    await model.settle()
    masters.append(model.environments[2]["MASTER_ADDR"])
    assert masters == [f"worker-0-uid-o-{attempt}.mnist-peers.default.svc" for attempt in (1, 2)]
    spec = model.manifests["mnist-worker-0"]["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("worker-0-uid-o-2", "mnist-peers")


def test_pods_of_an_older_operator_keep_the_names_that_they_have():
    made = job(status=STATUS, intranet="Service")
    names = [f"mnist-worker-{index}.mnist-peers" for index in range(2)]
    pods = [replace(one, dns_name=name) for one, name in zip(all_pods(made), names, strict=True)]
    waiting = [replace(one, phase=PodPhase.WAITING) for one in pods]
    decided = plan(made, world(*waiting, services={"mnist-peers": "uid"}), NOON)
    (environment,) = [one.manifest for one in decided.actions if getattr(one, "kind", "") is Kind.ENVIRONMENT]
    assert environment["data"]["PADDLE_TRAINERS"] == ",".join(f"{name}.default.svc" for name in names)
    there = world(*pods, services={"mnist-peers": "uid"}, environments={1: "uid"})
    trains = plan(job(status=RUNNING, intranet="Service"), there, NOON)
    assert (trains.status.attempt, trains.status.phase) == (1, "Running")
