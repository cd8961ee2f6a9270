"""How long pods get to shut down when their attempt ends."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase
from paddlejob.plan.restarts.shutdown import SHORT_GRACE
from tests.support.builders import job, template
from tests.support.model import Model


async def running(**options: Any) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


async def test_peers_of_a_collective_worker_that_died_are_ended_quickly():
    model = await running(workers=3)
    model.end("mnist-worker-1", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE


@pytest.mark.parametrize("lost", ["missing", "node"])
async def test_so_are_those_of_a_worker_that_vanished_or_lost_its_node(lost: str):
    model = await running(workers=2)
    if lost == "missing":
        del model.pods["mnist-worker-1"]
    else:
        model.change("mnist-worker-1", deletion_due=model.now + 30, disrupted=True, reason="NodeLost")
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE


async def test_trainers_of_a_dead_server_are_ended_quickly_but_not_those_of_a_dead_worker():
    model = await running(ps=1, workers=2)
    model.end("mnist-ps-0", 0)
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE
    model = await running(ps=1, workers=2)
    model.end("mnist-worker-1", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] is None


async def test_trainers_of_a_dead_heter_worker_are_ended_quickly():
    model = await running(ps=1, workers=2, heter=1)
    model.end("mnist-heter-0", 1)
    await model.step()
    assert model.graces["mnist-worker-0"] == SHORT_GRACE


async def test_a_job_that_is_whole_has_its_full_grace_period():
    evicted = await running(workers=2)
    evicted.change("mnist-worker-1", deletion_due=evicted.now + 30, disrupted=True, reason="Preempted")
    await evicted.step()
    assert evicted.graces == {"mnist-worker-0": None}
    scaled = await running(workers=2, elastic=1)
    scaled.edit(workers=3, elastic=1)
    await scaled.step()
    assert set(scaled.graces.values()) == {None}
    suspended = await running(workers=2)
    suspended.edit(workers=2, suspend=True)
    await suspended.step()
    assert set(suspended.graces.values()) == {None}


@pytest.mark.parametrize("own", ["terminationGracePeriodSeconds", "preStop"])
async def test_a_template_that_sets_its_own_shutdown_decides(own: str):
    made = template(lifecycle={"preStop": {"exec": {"command": ["save"]}}} if own == "preStop" else {})
    if own == "terminationGracePeriodSeconds":
        made["spec"][own] = 120
    model = await running(workers=2, worker_={"template": made})
    model.change("mnist-worker-1", phase=PodPhase.FAILED, exit_code=1)
    await model.step()
    assert model.graces["mnist-worker-0"] is None


async def test_the_next_attempt_does_not_wait_for_pods_whose_containers_have_all_ended():
    model = await running(workers=3)
    model.end("mnist-worker-1", 1)
    model.end("mnist-worker-2", 1, lingers=True)
    await model.step()
    assert sorted(model.pods) == ["mnist-worker-0", "mnist-worker-2"]
    assert all(pod.deleting for pod in model.pods.values()), "what may still run has its time to end"
    model.change("mnist-worker-0", phase=PodPhase.FAILED, exit_code=143, containers_ended=True)
    await model.step()
    assert sorted(model.pods) == ["mnist-worker-2"]
