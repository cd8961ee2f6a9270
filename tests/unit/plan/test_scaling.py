"""Scaling an elastic job while it runs."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Create, Delete, Kind
from tests.support.builders import job
from tests.support.model import Model

TOO_MANY = 9000


async def running(**options: object) -> Model:
    model = Model(job(elastic=1, **options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


async def test_scaling_down_to_the_workers_that_are_done_is_no_success_while_others_train():
    model = await running(workers=4)
    model.end("mnist-worker-0", 0)
    model.end("mnist-worker-1", 0)
    await model.settle()
    model.edit(workers=2, elastic=1)
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 2)
    assert [*model.pods] == ["mnist-worker-0", "mnist-worker-1"], "both train what is left, from the checkpoint"
    assert (model.status.restarts, model.status.disruptions) == (0, 0)


async def test_scaling_down_is_no_success_either_if_the_pods_of_the_others_are_gone():
    model = await running(workers=4)
    model.end("mnist-worker-0", 0)
    model.end("mnist-worker-1", 0)
    await model.settle()
    model.pods.clear()
    model.edit(workers=2, elastic=1)
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 2)


async def test_scaling_down_when_every_worker_is_done_is_a_success():
    model = await running(workers=4)
    for index in range(4):
        model.end(f"mnist-worker-{index}", 0)
    model.edit(workers=2, elastic=1)
    await model.settle()
    assert (model.status.phase, model.status.message) == (Phase.COMPLETED, "all 4 workers succeeded")


async def test_scaling_beyond_the_environments_limit_leaves_the_job_training_and_says_so():
    model = await running(workers=2)
    before = {pod.uid for pod in model.pods.values()}
    model.edit(workers=TOO_MANY, elastic=1)
    done = len(model.done)
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.RUNNING, "ScaleRejected")
    assert "training continues with 2 workers" in model.status.message
    assert "128 KiB" in model.status.message
    assert {pod.uid for pod in model.pods.values()} == before
    assert not [one for one in model.done[done:] if isinstance(one, Create | Delete) and one.kind is Kind.POD]
    assert (model.status.worker.replicas, model.status.worker.ready) == (2, "2/2")
    assert [one.reason for one in model.events if one.warning] == ["ScaleRejected"], "reported once"


async def test_a_rejected_scale_can_be_corrected():
    model = await running(workers=2)
    model.edit(workers=TOO_MANY, elastic=1)
    await model.settle()
    model.edit(workers=3, elastic=1)
    await model.settle()
    assert (model.status.phase, model.status.reason, len(model.pods)) == (Phase.RUNNING, "Running", 3)


async def test_a_job_whose_scale_was_rejected_restarts_with_its_old_size():
    model = await running(workers=2)
    model.edit(workers=TOO_MANY, elastic=1)
    await model.settle()
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert (model.status.phase, model.status.restarts, len(model.pods)) == (Phase.RUNNING, 1, 2)
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED


@pytest.mark.parametrize("suspend", [False, True])
async def test_a_job_that_never_ran_at_a_size_it_could_have_fails(suspend: bool):
    model = Model(job(workers=TOO_MANY, elastic=1, suspend=suspend))
    await model.settle()
    model.edit(workers=TOO_MANY, elastic=1)
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "EnvironmentTooLarge")
