"""Before training begins, a pod that cannot start is replaced alone: the others keep their nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import Phase, Role
from paddlejob.plan import Pod, PodPhase, plan, times
from paddlejob.plan.restarts import replacement_counts
from tests.support.builders import NOON, all_pods, deleted, job, world
from tests.support.model import Crash, Model


async def at_the_barrier(**options: object) -> Model:
    """Every pod waits at the start barrier except worker 1, which is being created."""
    model = Model(job(**options))
    await model.settle_until_created()
    model.tick()
    model.change("mnist-worker-1", phase=PodPhase.PENDING)
    await model.step()
    return model


def reject(model: Model, name: str = "mnist-worker-1", reason: str = "UnexpectedAdmissionError") -> None:
    """The kubelet does not admit the pod."""
    model.change(name, node="node-1", phase=PodPhase.FAILED, disrupted=True, reason=reason, message="no devices left")


def fail_init(model: Model, name: str = "mnist-worker-1") -> None:
    model.change(name, node="node-1", phase=PodPhase.FAILED, init_failed=True, exit_code=4, message="no route to host")


async def until_replaced(model: Model, name: str = "mnist-worker-1") -> None:
    before = model.pods[name].uid
    for _ in range(40):
        await model.step()
        for pod in list(model.pods.values()):
            if pod.deleting:
                del model.pods[pod.name]
        if name in model.pods and model.pods[name].uid != before:
            return
        model.now += 1
    raise AssertionError(model.status)


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "OutOfcpu", "NodeAffinity", "Evicted"])
async def test_a_pod_that_its_node_rejects_is_replaced_alone(reason: str):
    model = await at_the_barrier(workers=4)
    before = {name: pod.uid for name, pod in model.pods.items()}
    reject(model, reason=reason)
    await model.step()
    assert model.status.reason == "PodRejected"
    assert "mnist-worker-1" in model.status.message
    assert "no devices left" in model.status.message
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    assert (model.status.attempt, model.status.restarts, model.status.disruptions) == (1, 0, 0)
    assert [name for name, pod in model.pods.items() if pod.uid != before[name]] == ["mnist-worker-1"]
    assert [one.reason for one in model.events if one.warning] == ["PodRejected"]


@pytest.mark.parametrize("crash_after", range(4))
async def test_a_crash_neither_loses_nor_doubles_a_replacement(crash_after: int):
    model = await at_the_barrier()
    reject(model)
    model.crash_after = crash_after
    try:
        await model.step()
    except Crash:
        model.crash()
    model.crash_after = None
    await model.step()
    assert model.status.replacements == "worker-1:1"
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.replacements) == (Phase.RUNNING, 1, "worker-1:1")


async def test_a_pod_that_is_rejected_again_and_again_costs_a_disruption():
    model = await at_the_barrier()
    for number in range(1, 4):
        reject(model)
        await until_replaced(model)
        assert model.status.replacements == f"worker-1:{number}"
    reject(model)
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.disruptions) == (Phase.RUNNING, 2, 1)
    assert model.status.replacements == "", "the new attempt starts with none"


async def test_several_rejected_pods_are_replaced_at_once():
    model = await at_the_barrier(workers=4)
    reject(model, "mnist-worker-1")
    reject(model, "mnist-worker-3")
    await model.step()
    assert model.status.replacements == "worker-1:1,worker-3:1"
    assert "1 more" in model.status.message
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)


async def test_an_init_container_that_fails_is_retried_in_its_pod_alone():
    model = await at_the_barrier(backoffLimit=0)
    fail_init(model)
    await model.step()
    assert model.status.reason == "InitContainerFailed"
    assert "no route to host" in model.status.message
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.restarts) == (Phase.RUNNING, 1, 0)


async def test_an_init_container_that_keeps_failing_costs_a_restart():
    model = await at_the_barrier(backoffLimit=0)
    for _ in range(3):
        fail_init(model)
        await until_replaced(model)
    fail_init(model)
    await model.settle()
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert "no route to host" in model.status.message


async def test_once_training_has_begun_a_lost_pod_rebuilds_the_job():
    model = Model(job())
    await model.settle()
    reject(model)
    await model.settle()
    assert (model.status.attempt, model.status.disruptions) == (2, 1)


async def test_suspending_forgets_the_replacements_of_the_attempt():
    model = await at_the_barrier()
    reject(model)
    await model.step()
    model.edit(suspend=True)
    await model.settle()
    assert (model.status.phase, model.status.replacements) == (Phase.SUSPENDED, "")
    model.edit()
    await model.settle()
    assert model.status.phase is Phase.RUNNING


def test_replacements_are_written_and_read():
    counts = {(Role.PS, 0): 1, (Role.WORKER, 12): 3}
    assert replacement_counts.format(counts) == "ps-0:1,worker-12:3"
    assert replacement_counts.parse("ps-0:1,worker-12:3") == counts
    assert replacement_counts.parse("") == {}


async def test_a_pod_whose_init_container_failed_because_it_was_evicted_was_rejected():
    model = Model(job(workers=2))
    await model.settle_until_created()
    model.tick()
    model.change("mnist-worker-0", phase=PodPhase.PENDING)
    ended = {"init_failed": True, "disrupted": True, "reason": "Evicted", "message": "low on memory"}
    model.change("mnist-worker-1", node="node-1", phase=PodPhase.FAILED, exit_code=137, **ended)
    await model.step()
    assert model.status.reason == "PodRejected"
    assert "could not start on node node-1 (Evicted)" in model.status.message


STARTING = {"phase": "Pending", "reason": "PodsNotReady", "attempt": 1, "startTime": times.format(NOON - 5)}


def rejected(pods: tuple[Pod, ...], count: int, **more: Any) -> tuple[Pod, ...]:
    """The first pods were not admitted by their node; the others wait."""
    failed = {"phase": PodPhase.FAILED, "disrupted": True, "reason": "OutOfcpu", **more}
    return tuple(replace(pod, **failed) if at < count else pod for at, pod in enumerate(pods))


@pytest.mark.parametrize(("count", "disruptions"), [(100, 0), (101, 1)])
def test_a_hundred_pods_are_replaced_alone_and_one_more_is_a_disruption(count: int, disruptions: int):
    made = job(workers=102, status=STARTING)
    decided = plan(made, world(*rejected(all_pods(made, PodPhase.WAITING), count)), NOON)
    assert decided.status.disruptions == disruptions
    assert len(deleted(decided)) == (102 if disruptions else count)


def test_pods_that_were_replaced_before_count_towards_the_hundred():
    before = ",".join(f"worker-{index}:1" for index in range(2, 100))
    made = job(workers=102, status={**STARTING, "replacements": before})
    pods = [replace(pod, replacement=int(2 <= pod.index < 100)) for pod in all_pods(made, PodPhase.WAITING)]
    assert plan(made, world(*rejected(tuple(pods), 2)), NOON).status.disruptions == 0
    assert plan(made, world(*rejected(tuple(pods[:2] + pods[100:] + pods[2:100]), 3)), NOON).status.disruptions == 1


@pytest.mark.parametrize(("before", "seconds"), [(0, 0), (1, 4), (2, 8)])
def test_a_pod_that_was_replaced_before_is_replaced_4_and_8_seconds_after_it_was_created(before: int, seconds: int):
    made = job(status={**STARTING, "replacements": f"worker-0:{before}" if before else ""})
    pods = rejected(all_pods(made, PodPhase.WAITING, created=NOON), 1, replacement=before)
    if seconds:
        early = plan(made, world(*pods), NOON + seconds - 0.5)
        assert (deleted(early), early.wake_at) == ([], NOON + seconds)
        assert early.status.reason == "PodsNotReady", "what was reported stays"
    assert deleted(plan(made, world(*pods), NOON + seconds)) == ["mnist-worker-0"]


def test_a_rejected_pod_that_is_being_deleted_is_waited_for():
    made = job(status=STARTING)
    first, second = rejected(all_pods(made, PodPhase.WAITING), 1, deletion_due=NOON + 20)
    decided = plan(made, world(first, second), NOON)
    assert (deleted(decided), decided.status.disruptions, decided.status.phase) == ([], 0, Phase.PENDING)
