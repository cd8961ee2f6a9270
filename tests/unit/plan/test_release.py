"""A job of which only a part fits releases that part for a while, and no job that has a better prospect does."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Delete, Kind, PodPhase
from tests.support.builders import job
from tests.support.model import Model

LONGEST = 90.0
"""The default of scheduleTimeoutSeconds, with the longest jitter."""


def ready(model: Model, name: str) -> None:
    """The pod is placed and waits at the start barrier."""
    model.schedule(name)
    model.change(name, phase=PodPhase.WAITING, address="10.0.0.1")


async def half_placed(**options: object) -> Model:
    """One pod is placed, the other fits nowhere."""
    model = Model(job(**options))
    await model.settle_until_created()
    ready(model, "mnist-worker-0")
    model.fits_nowhere("mnist-worker-1")
    await model.step()
    return model


def released(model: Model) -> bool:
    return any(isinstance(one, Delete) and one.kind is Kind.POD for one in model.done)


async def test_patience_counts_from_when_the_pod_was_first_found_to_fit_nowhere():
    model = Model(job())
    await model.settle_until_created()
    ready(model, "mnist-worker-0")
    model.now += 1000
    del model.pods["mnist-worker-1"]
    await model.step()
    model.fits_nowhere("mnist-worker-1")
    await model.step()
    assert not released(model), "the pod that is late is new"
    model.now += 59
    await model.step()
    assert not released(model)
    model.now += LONGEST - 59
    await model.step()
    assert model.status.reason == "PartiallyScheduled"


async def test_the_deadline_restarts_when_another_pod_is_scheduled():
    model = Model(job(workers=3))
    await model.settle_until_created()
    for name in model.pods:
        model.fits_nowhere(name)
    model.now += 300
    model.schedule("mnist-worker-0")
    await model.step()
    assert not released(model), "an autoscaler has just brought the first node"
    model.now += 50
    model.schedule("mnist-worker-1")
    await model.step()
    model.now += 50
    await model.step()
    assert not released(model)
    model.now += LONGEST
    await model.step()
    assert released(model)


async def test_a_pod_for_which_others_are_preempted_is_waited_for():
    model = await half_placed()
    model.change("mnist-worker-1", nominated=True)
    model.now += 500
    await model.step()
    assert not released(model), "its victims would have died in vain"
    model.change("mnist-worker-1", nominated=False)
    await model.step()
    assert released(model)


@pytest.mark.parametrize("policy", [{"minAvailable": 1}, {}])
async def test_a_gang_of_which_only_a_part_is_placed_releases_it_too(policy: dict):
    model = await half_placed(schedulingPolicy=policy)
    model.now += LONGEST
    await model.step()
    assert model.status.reason == "PartiallyScheduled"


async def test_a_gang_that_is_placed_nowhere_waits():
    model = Model(job(schedulingPolicy={}))
    await model.settle_until_created()
    for name in model.pods:
        model.fits_nowhere(name)
    model.now += 500
    await model.step()
    assert not released(model)


async def test_a_gang_half_of_which_exceeds_a_quota_gives_its_part_back():
    model = Model(job(schedulingPolicy={}))
    model.rejects["mnist-worker-1"] = Rejected("Forbidden", "exceeded quota: pods")
    for _ in range(3):
        await model.step()
    assert [*model.pods] == ["mnist-worker-0"]
    model.now += LONGEST
    await model.step()
    assert model.status.reason == "PartiallyCreated"


async def test_the_patience_is_a_field_of_the_job():
    model = await half_placed(scheduleTimeoutSeconds=1000)
    model.now += 999
    await model.step()
    assert not released(model)
    model.now += 501
    await model.step()
    assert model.status.reason == "PartiallyScheduled"


async def test_a_job_that_only_pulls_slowly_is_not_released():
    model = Model(job())
    await model.settle_until_created()
    for name in model.pods:
        model.schedule(name)
    model.now += 200
    await model.step()
    assert (model.status.phase, model.status.reason, model.status.attempt) == (Phase.PENDING, "PodsNotReady", 1)
    assert not released(model)


async def test_the_plan_looks_again_when_the_patience_is_over():
    model = await half_placed()
    wake_at = await model.step()
    assert wake_at is not None
    model.now = wake_at
    await model.step()
    assert model.status.reason == "PartiallyScheduled"
