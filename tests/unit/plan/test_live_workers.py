"""Workers of an asynchronous parameter-server job come and go while the others train."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase, Progress
from paddlejob.plan import Create
from paddlejob.plan.world import LogReading
from tests.support.builders import job
from tests.support.model import Model

LIVE = {"ps": 2, "workers": 3, "elastic": 1, "withGloo": 0}
TRAINED = LogReading(attempt=1, step=20, metrics={"loss": 0.5})


async def training(**options: object) -> Model:
    model = Model(job(**LIVE | options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


def uids(model: Model) -> dict[str, str]:
    return {name: pod.uid for name, pod in model.pods.items()}


def replaced(model: Model, before: dict[str, str]) -> list[str]:
    return sorted(name for name, uid in uids(model).items() if before.get(name) != uid)


def variables(model: Model, name: str) -> dict[str, str]:
    container = model.manifests[name]["spec"]["containers"][0]
    return {one["name"]: one.get("value", "") for one in container["env"]}


def reach(model: Model, step: int) -> None:
    """The log of worker 0 shows a step, after a while."""
    model.now += 60
    progress = (model.status.progress or Progress()).model_copy(update={"step": step, "highestStep": step})
    assert model.job is not None
    model.job = model.job.model_copy(update={"status": model.status.model_copy(update={"progress": progress})})


def evict(model: Model, name: str) -> None:
    model.change(name, disrupted=True, reason="Evicted", message="node is drained")


def delete(model: Model, name: str) -> None:
    model.change(name, deletion_due=model.now + 30)


def vanish(model: Model, name: str) -> None:
    del model.pods[name]


@pytest.mark.parametrize("different", [{"withGloo": 1}, {"elastic": 0}, {"ps": 0}])
async def test_other_jobs_are_rebuilt_as_a_whole(different):
    model = await training(**different)
    model.end("mnist-worker-2", 1)
    await model.settle()
    assert (model.status.attempt, model.status.restarts) == (2, 1)


async def test_a_server_that_fails_while_a_worker_joins_is_a_failure_of_the_server():
    model = await training()
    evict(model, "mnist-worker-1")
    await model.step()
    del model.pods["mnist-worker-1"]
    model.end("mnist-ps-0", 1)
    await model.step()
    assert (model.status.attempt, model.status.restarts, model.status.disruptions) == (2, 1, 1)
    assert "mnist-ps-0" in model.status.message


async def test_failures_of_an_attempt_count_however_far_it_came_and_those_before_the_last_progress_do_not():
    model = await training(backoffLimit=1)
    for step, server in enumerate(("mnist-ps-0", "mnist-ps-1", "mnist-ps-0"), start=1):
        reach(model, 100 * step)
        model.end(server, 1)
        await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.restarts) == (Phase.RUNNING, 4, 3)
    reach(model, 400)
    model.end("mnist-ps-0", 1)
    await model.settle()
    model.end("mnist-worker-2", 1)
    await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert "failed 2 times, backoffLimit is 1" in model.status.message


async def test_the_failures_of_live_workers_are_shown_with_their_limit():
    model = await training(backoffLimit=2)
    reach(model, 100)
    model.end("mnist-ps-0", 1)
    await model.settle()
    model.end("mnist-worker-2", 1)
    await model.step()
    assert "(restart 2, failure 2 of 2)" in model.status.message


async def test_while_a_failed_worker_waits_the_job_says_so_and_another_is_replaced_at_once():
    model = await training(backoffLimit=10)
    for _ in range(3):
        model.end("mnist-worker-1", 1)
        await model.settle()
    model.end("mnist-worker-1", 1)
    await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.RUNNING, "ProgramFailed")
    assert "its pod is replaced at" in model.status.message
    before = uids(model)
    evict(model, "mnist-worker-2")
    for _ in range(4):
        await model.step()
        model.tick()
    assert replaced(model, before) == ["mnist-worker-2"]


async def test_a_pod_that_joins_starts_at_once_with_the_environment_of_its_attempt():
    model = await training()
    model.end("mnist-worker-2", 1)
    await model.settle()
    found = variables(model, "mnist-worker-2")
    assert found["PADDLEJOB_JOINS"] == "1"
    assert found["PADDLE_TRAINERS_NUM"] == "3"
    endpoints = found["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert endpoints[:2] == [f"{model.pods[f'mnist-worker-{index}'].address}:2379" for index in (0, 1)]
    assert endpoints[2] == "$(POD_IP):2379"
    assert "TEST_MODE" not in found
    assert list(model.environments) == [1]


async def test_the_first_worker_is_replaced_alone_if_its_log_shows_that_it_trained_and_keeps_the_parameters():
    model = await training()
    model.logs = TRAINED
    before = uids(model)
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert replaced(model, before) == ["mnist-worker-0"]
    assert variables(model, "mnist-worker-0")["TEST_MODE"] == "1"


async def test_a_worker_that_fits_on_no_node_leaves_the_others_training():
    model = await training()
    evict(model, "mnist-worker-1")
    while model.pods.get("mnist-worker-1") is None or model.pods["mnist-worker-1"].replacement == 0:
        await model.step()
        for pod in list(model.pods.values()):
            if pod.deleting:
                del model.pods[pod.name]
    model.fits_nowhere("mnist-worker-1")
    await model.settle()
    model.now += 1000
    await model.settle()
    assert (model.status.phase, model.status.reason, model.status.attempt) == (Phase.RUNNING, "Unschedulable", 1)


async def test_a_lost_node_that_holds_on_to_its_pod_does_not_delay_other_workers():
    model = await training()
    model.kubelet_runs = False
    evict(model, "mnist-worker-1")
    await model.step()
    before, earlier = uids(model), len(model.done)
    vanish(model, "mnist-worker-2")
    for _ in range(4):
        await model.step()
        model.tick()
    assert replaced(model, before) == ["mnist-worker-2"], "worker 1 still has its old pod"
    created = [one.name for one in model.done[earlier:] if isinstance(one, Create)]
    assert created == ["mnist-worker-2"], "the name of the other is still taken"


async def test_a_job_completes_when_the_replaced_worker_is_done_too():
    model = await training()
    model.end("mnist-worker-1", 1)
    await model.settle()
    for index in range(3):
        assert model.status.phase is Phase.RUNNING
        model.end(f"mnist-worker-{index}", 0)
        await model.settle()
    assert model.status.phase is Phase.COMPLETED


async def test_workers_are_added_without_a_rebuild():
    model = await training()
    before = uids(model)
    model.edit(**LIVE | {"workers": 5})
    await model.settle()
    assert replaced(model, before) == ["mnist-worker-3", "mnist-worker-4"]
    assert before.items() <= uids(model).items()
    assert (model.status.attempt, model.status.disruptions, model.status.worker.ready) == (1, 0, "5/5")
    assert len(variables(model, "mnist-worker-4")["PADDLE_TRAINER_ENDPOINTS"].split(",")) == 5
    assert "scaled from 3 to 5 workers" in model.events[-1].message


async def test_workers_are_removed_without_a_rebuild_and_the_rest_completes_the_job():
    model = await training()
    before = uids(model)
    model.edit(**LIVE | {"workers": 2})
    await model.settle()
    assert set(uids(model)) == set(before) - {"mnist-worker-2"}
    assert uids(model).items() <= before.items()
    assert (model.status.attempt, model.status.disruptions, model.status.worker.ready) == (1, 0, "2/2")
    model.end("mnist-worker-0", 0)
    model.end("mnist-worker-1", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED


async def test_a_worker_that_is_removed_and_added_again_gets_a_new_pod_and_no_disruption():
    model = await training()
    old = uids(model)["mnist-worker-2"]
    model.edit(**LIVE | {"workers": 2})
    await model.step()
    model.edit(**LIVE)
    for _ in range(3):
        await model.step()
    assert uids(model)["mnist-worker-2"] == old, "it still ends"
    await model.settle()
    assert uids(model)["mnist-worker-2"] != old
    assert (model.status.attempt, model.status.disruptions) == (1, 0)


async def test_the_record_of_workers_that_came_and_went_does_not_grow():
    model = await training()
    for workers in (40, 3, 40, 3):
        model.edit(**LIVE | {"workers": workers})
        await model.settle()
        assert model.status.worker.ready == f"{workers}/{workers}"
    evict(model, "mnist-worker-1")
    await model.settle()
    assert model.status.replacements == "worker-1:1"
    assert (model.status.attempt, model.status.disruptions) == (1, 1)


async def test_the_template_still_changes_only_with_a_rebuild():
    model = await training()
    model.edit(**LIVE, suspend=True, worker_={"template": {"spec": {"containers": [{"name": "paddle", "image": "b"}]}}})
    await model.settle()
    model.edit(**LIVE, worker_={"template": {"spec": {"containers": [{"name": "paddle", "image": "b"}]}}})
    await model.settle()
    assert model.status.attempt == 2
    assert model.manifests["mnist-worker-2"]["spec"]["containers"][0]["image"] == "b"


@pytest.mark.parametrize("crash_after", range(6))
async def test_a_crash_between_any_two_steps_neither_loses_nor_doubles_a_replacement(crash_after):
    model = await training()
    before = uids(model)
    model.end("mnist-worker-1", 1)
    vanish(model, "mnist-worker-2")
    model.crash_after = crash_after
    await model.settle()
    assert (model.status.attempt, model.status.restarts, model.status.disruptions) == (1, 1, 1)
    assert model.status.replacements == "worker-1:1,worker-2:1"
    assert replaced(model, before) == ["mnist-worker-1", "mnist-worker-2"]


@pytest.mark.parametrize("crash_after", range(6))
async def test_a_crash_while_workers_are_added_is_no_disruption(crash_after):
    model = await training()
    model.edit(**LIVE | {"workers": 5})
    model.crash_after = crash_after
    await model.settle()
    assert (model.status.attempt, model.status.disruptions, model.status.worker.ready) == (1, 0, "5/5")


async def test_by_service_a_worker_that_is_added_is_found_through_the_one_of_the_job():
    model = await training(intranet="Service")
    model.edit(**LIVE | {"workers": 4, "intranet": "Service"})
    await model.settle()
    assert model.services == {"mnist-peers"}
    container = model.manifests["mnist-worker-3"]["spec"]["containers"][0]
    given = {one["name"]: one.get("value", "") for one in container["env"]}
    others = [f"worker-{index}-uid-o-1.mnist-peers.default.svc" for index in range(3)]
    assert given["PADDLE_TRAINERS"].split(",") == [*others, "$(POD_IP)"]
