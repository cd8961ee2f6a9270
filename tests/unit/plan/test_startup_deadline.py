"""A pod that does not start in time is replaced, and then the job lets go of its nodes for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Plan, PodPhase, plan, times
from tests.support.builders import NOON, all_pods, deleted, job, world
from tests.support.model import Model

BACK_OFF = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:v1"'}


async def stuck(**options: object) -> Model:
    """Worker 1 is being created, and stays that way, while the others wait at the start barrier."""
    model = Model(job(**options))
    await model.settle_until_created()
    model.tick()
    hold(model)
    await model.step()
    return model


def hold(model: Model, **more: object) -> None:
    model.change("mnist-worker-1", phase=PodPhase.PENDING, address="", node="node-1", **more)


async def recreate(model: Model) -> None:
    """The pods that were deleted are gone, new ones are created and placed, and worker 1 is stuck again."""
    for _ in range(40):
        model.tick()
        await model.step()
        if len(model.pods) == len(model.job.spec.slots) and not any(pod.deleting for pod in model.pods.values()):
            break
        model.now += 30
    model.tick()
    hold(model)
    await model.step()


@pytest.mark.parametrize("more", [{}, BACK_OFF])
async def test_a_pod_that_does_not_start_is_replaced_once(more: dict):
    model = await stuck(workers=3)
    before = {name: pod.uid for name, pod in model.pods.items()}
    hold(model, **more)
    model.now += 590
    await model.step()
    assert {name: pod.uid for name, pod in model.pods.items()} == before
    model.now += 20
    await model.step()
    assert model.status.reason == "StartupDeadlineExceeded"
    assert "mnist-worker-1" in model.status.message
    assert (model.status.attempt, model.status.replacements) == (1, "worker-1:1")
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)
    assert [name for name, pod in model.pods.items() if pod.uid != before[name]] == ["mnist-worker-1"]


async def test_if_that_does_not_help_the_job_releases_its_nodes_and_says_why():
    model = await stuck()
    model.now += 610
    await model.step()
    await recreate(model)
    assert model.status.attempt == 1
    hold(model, **BACK_OFF)
    model.now += 610
    await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.RESTARTING, "StartupDeadlineExceeded")
    assert 'image "nope:v1"' in model.status.message
    assert (model.status.attempt, model.status.startupTimeouts) == (2, 1)
    assert (model.status.restarts, model.status.disruptions) == (0, 0), "the program did not fail"
    assert all(pod.deleting for pod in model.pods.values())
    assert any(one.reason == "StartupDeadlineExceeded" and one.warning for one in model.events)
    await model.settle()
    assert model.status.phase is Phase.RUNNING


async def test_the_job_waits_longer_each_time():
    model = await stuck()
    waits = []
    for _ in range(3):
        for _ in range(2):
            model.now += 610
            await model.step()
            begun = model.now
            await recreate(model)
        waits.append(model.now - begun)
    assert model.status.startupTimeouts == 3
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]


async def test_an_init_container_may_run_for_as_long_as_it_likes():
    model = await stuck()
    hold(model, initializing=True)
    model.now += 5000
    await model.step()
    assert model.status.reason == "PodsNotReady"
    hold(model, initializing=False, init_ended=model.now)
    model.now += 590
    await model.step()
    assert model.status.reason == "PodsNotReady", "the time counts from its end"
    model.now += 20
    await model.step()
    assert model.status.reason == "StartupDeadlineExceeded"


async def test_a_pod_without_a_node_or_ready_to_start_does_not_miss_the_deadline():
    model = Model(job())
    await model.settle_until_created()
    model.fits_nowhere("mnist-worker-0")
    model.fits_nowhere("mnist-worker-1")
    model.now += 5000
    await model.step()
    assert model.status.reason == "Unschedulable"
    model = await stuck()
    model.change("mnist-worker-1", initializing=True)
    model.now += 5000
    await model.step()
    assert model.status.attempt == 1, "worker 0 has waited at the start barrier all the time"


async def test_a_job_that_trains_has_met_the_deadline():
    model = Model(job())
    await model.settle()
    model.now += 5000
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)


MISSING = {"phase": PodPhase.PENDING, "reason": "CreateContainerConfigError", "message": 'secret "token" not found'}


def started(late: str, now: float, opened: float = -50, **shape: object) -> Plan:
    """The start barrier is open, and all programs run but this one, whose pod got its node 90 s ago."""
    since = times.format(NOON + opened)
    status = {
        "phase": "Starting", "reason": "Starting", "attempt": 1, "publishedAttempt": 1, "observedGeneration": 1,
        "startTime": times.format(NOON - 100), "worker": {"replicas": 2},
        "conditions": [{"type": "StartBarrierOpen", "status": "True", "lastTransitionTime": since}],
    }  # fmt: skip
    made = job(startupDeadlineSeconds=100, status=status, **shape)
    pods = [replace(pod, scheduling_since=NOON - 90) for pod in all_pods(made)]
    seen = [replace(pod, **MISSING) if pod.name == late else pod for pod in pods]
    return plan(made, world(*seen, environments={1: "uid"}), NOON + now)


@pytest.mark.parametrize("late", ["mnist-worker-1", "mnist-ps-0"])
@pytest.mark.parametrize("live", [{}, {"elastic": 1, "withGloo": 0}])
def test_a_program_that_does_not_start_although_all_others_run_is_not_waited_for_without_end(late: str, live: dict):
    early = started(late, 49, ps=1, **live)
    assert (early.status.attempt, early.wake_at) == (1, NOON + 50), "the time runs from when the barrier was opened"
    decided = started(late, 50, ps=1, **live)
    assert (decided.status.startupTimeouts, decided.status.restarts) == (1, 0)
    if live and "worker" in late:
        assert (decided.status.attempt, deleted(decided)) == (1, [late]), "a live worker is replaced alone"
        return
    assert (decided.status.attempt, decided.status.reason) == (2, "StartupDeadlineExceeded")
    assert 'CreateContainerConfigError: secret "token" not found' in decided.status.message
    assert deleted(decided) == ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"]
