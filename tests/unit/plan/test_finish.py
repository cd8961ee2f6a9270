"""What becomes of the pods of a job that has ended, where nothing may run on."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Delete, Kind, PodGroup, PodPhase, Stop, names, plan, times
from tests.support.builders import NOON, all_pods, deleted, job, running, world
from tests.support.local_model import LocalModel
from tests.support.model import Model


async def completed(backend: type[Model], policy: str) -> Model:
    model = backend(job(ps=2, workers=1, cleanPodPolicy=policy))
    await model.settle()
    model.end("mnist-worker-0", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED
    return model


def stopped(model: Model) -> list[str]:
    return [action.pod.name for action in model.done if isinstance(action, Stop)]


async def test_servers_of_a_completed_job_run_on_in_a_cluster():
    model = await completed(Model, "Never")
    assert model.pods["mnist-ps-0"].phase is PodPhase.RUNNING
    assert not stopped(model)


async def test_where_nothing_may_outlive_its_job_each_server_is_stopped_once():
    model = await completed(LocalModel, "Never")
    assert stopped(model) == ["mnist-ps-0", "mnist-ps-1"]
    assert all(pod.ended for pod in model.pods.values())


async def test_a_server_that_was_stopped_at_the_end_has_not_failed():
    model = await completed(LocalModel, "OnFailure")
    model.now += 5
    await model.step()
    assert (model.status.ps.running, model.status.ps.failed, model.status.reason) == (0, 0, "Completed")


@pytest.mark.parametrize("policy", ["Always", "OnCompletion"])
async def test_pods_that_are_deleted_need_no_stop(policy: str):
    model = await completed(LocalModel, policy)
    assert not model.pods
    assert not stopped(model)


async def test_a_sidecar_that_still_runs_is_stopped_with_the_job():
    model = LocalModel(job(workers=1, cleanPodPolicy="Never"))
    await model.settle()
    model.end("mnist-worker-0", 0, lingers=True)
    await model.step()
    assert stopped(model) == ["mnist-worker-0"]


@pytest.mark.parametrize("backend", [Model, LocalModel])
async def test_a_worker_that_has_succeeded_does_not_keep_its_requests_for_a_sidecar(backend: type[Model]):
    model = backend(job(ps=1, workers=2, cleanPodPolicy="Never"))
    await model.settle()
    model.end("mnist-worker-0", 0, lingers=True)
    await model.step()
    assert not stopped(model), "not before its success is on record"
    await model.settle()
    assert stopped(model) == ["mnist-worker-0"], "although the other still trains"
    assert (model.status.phase, model.status.worker.succeeded) == (Phase.RUNNING, 1)
    model.end("mnist-worker-1", 0, lingers=True)
    await model.settle()
    model.now += 5
    await model.step()
    assert "mnist-worker-1" in stopped(model)
    assert not any(pod.lingers for pod in model.pods.values())
    assert model.status.phase is Phase.COMPLETED


async def test_a_pod_without_a_sidecar_is_left_to_end_by_itself():
    model = Model(job(workers=2, cleanPodPolicy="Never"))
    await model.settle()
    model.end("mnist-worker-0", 0, lingers=True, containers_ended=True)
    await model.settle()
    model.end("mnist-worker-1", 0)
    await model.settle()
    assert not stopped(model)


@pytest.mark.parametrize("backend", [Model, LocalModel])
@pytest.mark.parametrize("policy", ["Never", "OnCompletion"])
async def test_a_failed_job_leaves_no_pod_that_waits_for_a_node(backend: type[Model], policy: str):
    model = backend(job(cleanPodPolicy=policy, activeDeadlineSeconds=50))
    await model.step()
    model.change("mnist-worker-0", address="10.0.0.1", node="node-1", phase=PodPhase.WAITING)
    model.change("mnist-worker-1", reason="Unschedulable", message="0/1 nodes are available")
    for _ in range(2):
        model.now += 5
        await model.step()
    model.now += 51
    await model.step()
    assert model.status.reason == "DeadlineExceeded"
    model.tick()
    assert "mnist-worker-1" not in model.pods, "no kubelet would ever end it"
    assert model.pods["mnist-worker-0"].ended, "while a pod that has a node keeps its log"


@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_the_pod_group_of_a_job_that_ended_goes_and_that_of_the_user_stays(policy: str):
    made = running(job(schedulingPolicy={}, cleanPodPolicy=policy))
    groups = (PodGroup(names.pod_group(made), "u-1", owned=True), PodGroup("mine", "u-2", owned=False))
    pods = all_pods(made, PodPhase.SUCCEEDED, exit_code=0)
    decided = plan(made, world(*pods, environments={1: "uid"}, pod_groups=groups), NOON)
    assert decided.status.phase is Phase.COMPLETED
    deleted = [one.uid for one in decided.actions if isinstance(one, Delete) and one.kind is Kind.POD_GROUP]
    assert deleted == ["u-1"]


FAILED = {"phase": "Failed", "reason": "ProgramFailed", "attempt": 1, "completionTime": times.format(NOON)}


@pytest.mark.parametrize(
    ("about", "is_stopped"),
    [
        ({}, True),
        ({"stopping": True}, False),
        ({"deletion_due": NOON + 20}, False),
        ({"phase": PodPhase.FAILED}, False),
        ({"phase": PodPhase.FAILED, "lingers": True}, True),
        ({"phase": PodPhase.PENDING}, True),
        ({"phase": PodPhase.PENDING, "node": ""}, False),
        ({"phase": PodPhase.WAITING, "node": ""}, True),
    ],
)
def test_of_a_failed_job_each_pod_that_still_runs_is_stopped_once(about: dict[str, Any], is_stopped: bool):
    made = job(status=FAILED, cleanPodPolicy="Never")
    _, pod = all_pods(made, **about)
    decided = plan(made, world(pod), NOON)
    assert [one.pod.name for one in decided.actions if isinstance(one, Stop)] == [pod.name] * is_stopped
    assert deleted(decided) == ([pod.name] if not pod.node and pod.phase is PodPhase.PENDING else [])
