"""What becomes of the pods of a job that has ended, where nothing may run on."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase, Stop
from tests.support.builders import job
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


async def test_a_pod_that_an_earlier_version_stopped_without_a_node_is_removed_too():
    model = Model(job(cleanPodPolicy="Never", backoffLimit=0))
    await model.settle()
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert model.status.phase is Phase.FAILED
    model.change("mnist-worker-1", phase=PodPhase.PENDING, node="", stopping=True, reason="Unschedulable")
    await model.settle()
    assert [*model.pods] == ["mnist-worker-0"]
