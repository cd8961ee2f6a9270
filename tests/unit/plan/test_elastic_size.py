"""An elastic job starts with the workers that fit, goes on with those that are left, and grows when there is room."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Phase, Role
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Create, Kind, PodPhase
from tests.support.builders import job
from tests.support.model import Crash, Model

INTERVAL = 1000
"""Longer than a model lets pass by itself while it settles."""


ELASTIC: dict[str, Any] = {
    "elastic": 1,
    "worker_": {"requests": 2, "limits": 4},
    "growthIntervalSeconds": INTERVAL,
}


def elastic(*, room: int | None = None, **options: Any) -> Model:
    model = Model(job(**{"workers": 4, **ELASTIC} | options))
    model.capacity = room
    return model


async def running(room: int | None = None, **options: Any) -> Model:
    model = elastic(room=room, **options)
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


def ranks(model: Model) -> dict[str, str]:
    """The rank of each worker of the current attempt, as its pod reads it."""
    data, found = model.environments[model.status.attempt], {}
    for name, pod in model.pods.items():
        if pod.role is Role.WORKER and pod.attempt == model.status.attempt:
            env = model.manifests[name]["spec"]["containers"][0]["env"]
            (rank,) = [one["valueFrom"]["configMapKeyRef"]["key"] for one in env if one["name"] == "PADDLE_TRAINER_ID"]
            found[name] = data[rank]
    return found


def events(model: Model) -> list[str]:
    return [one.reason for one in model.events]


async def pass_time(model: Model, seconds: float) -> None:
    model.now += seconds
    await model.settle()


async def test_a_job_that_fits_starts_with_all_its_workers():
    model = await running(room=4)
    assert (model.status.worker.ready, model.status.worker.members, model.status.worker.replicas) == ("4/4", "0-3", 4)
    assert events(model) == []


async def test_with_room_for_three_of_four_it_starts_with_three_and_says_so():
    model = await running(room=3)
    worker = model.status.worker
    assert (worker.ready, worker.members, worker.replicas, model.status.attempt) == ("3/4", "0-2", 3, 1)
    assert model.status.message.startswith("training with 3 of 4 workers")
    assert model.environments[1]["PADDLE_TRAINERS_NUM"] == "3"
    assert events(model) == ["Unschedulable", "ScaledDown"]
    event = model.events[-1]
    assert "training starts with 3 of 4 workers" in event.message
    assert "Insufficient cpu" in event.message
    assert (model.status.restarts, model.status.disruptions) == (0, 0)


async def test_ranks_are_contiguous_whichever_pods_fit():
    model = elastic(room=3)
    await model.settle_until_created()
    model.fits_nowhere("mnist-worker-1")
    for index in (0, 2, 3):
        model.schedule(f"mnist-worker-{index}")
        model.change(f"mnist-worker-{index}", phase=PodPhase.WAITING, address=f"10.1.0.{index}")
    await model.settle()
    assert model.status.worker.members == "0,2-3"
    assert ranks(model) == {"mnist-worker-0": "0", "mnist-worker-2": "1", "mnist-worker-3": "2"}
    data = model.environments[1]
    assert data["PADDLE_TRAINER_ENDPOINTS"] == "10.1.0.0:2379,10.1.0.2:2379,10.1.0.3:2379"
    assert (data["NNODES"], data["MASTER_ADDR"]) == ("3", "10.1.0.0")


async def test_below_requests_it_waits_and_releases_its_nodes_as_any_other_job():
    model = elastic(room=1)
    await model.settle_until_created()
    for _ in range(6):
        model.tick()
        await model.step()
        model.now += 20
    assert model.status.worker.members == ""
    assert events(model)[:2] == ["Unschedulable", "PartiallyScheduled"]


async def test_without_requests_the_size_is_fixed():
    model = Model(job(workers=4, elastic=1))
    model.capacity = 3
    await model.settle_until_created()
    model.tick()
    model.now += 40
    await model.step()
    assert (model.status.phase, model.status.reason) == (Phase.PENDING, "Unschedulable")


async def test_a_quota_that_forbids_growing_is_a_reason_for_nothing_else():
    model = elastic()
    model.rejects["mnist-worker-3"] = Rejected("Forbidden", "exceeded quota: pods")
    await model.settle()
    tries = len([one for one in model.done if isinstance(one, Create) and one.name == "mnist-worker-3"])
    await pass_time(model, INTERVAL)
    await pass_time(model, INTERVAL / 2)
    again = len([one for one in model.done if isinstance(one, Create) and one.name == "mnist-worker-3"])
    assert again == tries + 1, "it is tried once in an interval"
    assert model.status.message == "training with 3 of 4 workers: exceeded quota: pods"
    seen = len(model.events)
    model.end("mnist-worker-0", 1)
    await model.settle()
    assert (model.status.phase, model.status.worker.ready) == (Phase.RUNNING, "3/4")
    assert [one.reason for one in model.events[seen:]] == ["ProgramFailed"]
    del model.rejects["mnist-worker-3"]
    await pass_time(model, INTERVAL)
    assert model.status.worker.ready == "4/4"


async def test_it_grows_when_room_appears_but_not_before_the_interval_is_over():
    model = await running(room=3)
    model.capacity = 4
    before = {pod.uid for pod in model.pods.values()}
    await pass_time(model, 100)
    assert {pod.uid for pod in model.pods.values()} == before, "it has shrunk two minutes ago"
    await pass_time(model, INTERVAL)
    status = model.status
    assert (status.phase, status.attempt, status.worker.ready, status.worker.members) == (
        Phase.RUNNING,
        2,
        "4/4",
        "0-3",
    )
    assert (status.restarts, status.disruptions) == (0, 0)
    assert events(model)[-1] == "ScaledUp"
    assert "growing from 3 to 4 of 4 workers" in model.events[-1].message
    assert sorted(ranks(model).values()) == ["0", "1", "2", "3"]
    for index in range(4):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED


async def test_pods_that_wait_for_room_disturb_nothing():
    model = await running(room=3)
    trains = {name: pod.uid for name, pod in model.pods.items()}
    await pass_time(model, INTERVAL)
    spare = model.pods["mnist-worker-3"]
    assert (spare.attempt, spare.reason) == (2, "Unschedulable"), "what an autoscaler needs to add a node"
    assert {name: pod.uid for name, pod in model.pods.items() if name in trains} == trains
    status = model.status
    assert (status.phase, status.reason, status.attempt) == (Phase.RUNNING, "Running", 1)
    assert (status.worker.running, status.worker.pending, status.worker.ready) == (3, 0, "3/4")
    assert "training with 3 of 4 workers: 0/1 nodes are available: 1 Insufficient cpu." in status.message
    await pass_time(model, 10 * INTERVAL)
    assert {name: pod.uid for name, pod in model.pods.items() if name in trains} == trains
    model.capacity = 4
    await pass_time(model, 1)
    assert (model.status.attempt, model.status.worker.ready) == (2, "4/4")
    assert model.pods["mnist-worker-3"].uid == spare.uid, "the pod that waited is simply current now"


async def test_they_go_when_the_job_ends_is_suspended_or_asks_for_less():
    model = await running(room=3)
    await pass_time(model, INTERVAL)
    assert "mnist-worker-3" in model.pods
    model.edit(workers=3, **ELASTIC)
    await model.settle()
    assert ("mnist-worker-3" in model.pods, model.status.attempt) == (False, 1)
    assert (model.status.worker.ready, model.status.message) == ("3/3", "all pods are running")

    model = await running(room=3, cleanPodPolicy="Never")
    await pass_time(model, INTERVAL)
    for index in range(3):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert (model.status.phase, "mnist-worker-3" in model.pods) == (Phase.COMPLETED, False)
    assert model.status.message == "all 3 workers succeeded"

    model = await running(room=3)
    await pass_time(model, INTERVAL)
    model.edit(workers=4, **ELASTIC, suspend=True)
    await model.settle()
    assert (model.status.phase, model.pods) == (Phase.SUSPENDED, {})


async def test_they_go_when_the_first_worker_is_done_and_when_the_job_fails():
    model = await running(room=3)
    await pass_time(model, INTERVAL)
    model.end("mnist-worker-1", 0)
    await model.settle()
    assert (model.status.phase, "mnist-worker-3" in model.pods) == (Phase.RUNNING, False)
    assert model.status.message == "1 of 3 workers have finished"

    model = await running(room=3, backoffLimit=0, cleanPodPolicy="Never")
    await pass_time(model, INTERVAL)
    model.end("mnist-worker-1", 1)
    await model.settle()
    assert (model.status.phase, "mnist-worker-3" in model.pods) == (Phase.FAILED, False)


async def test_one_that_failed_is_not_taken_for_a_pod_of_the_attempt_that_a_failure_begins():
    model = await running(room=3)
    await pass_time(model, INTERVAL)
    model.change("mnist-worker-3", phase=PodPhase.FAILED, exit_code=1)
    model.end("mnist-worker-1", 1)
    model.crash_after = 1
    with pytest.raises(Crash):
        await model.step()
    model.crash()
    assert (model.status.attempt, len(model.pods)) == (2, 4), "the attempt is recorded, and nothing is deleted yet"
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.worker.ready) == (Phase.RUNNING, 2, "3/4")
    assert (model.status.restarts, model.status.disruptions) == (1, 0)


async def test_a_smaller_job_that_was_suspended_resumes_with_all_its_workers_if_they_fit_now():
    model = await running(room=3)
    model.edit(workers=4, **ELASTIC, suspend=True)
    await model.settle()
    model.capacity = 4
    model.edit(workers=4, **ELASTIC)
    await model.settle()
    assert (model.status.phase, model.status.worker.ready, model.status.attempt) == (Phase.RUNNING, "4/4", 2)


async def test_two_changes_of_size_in_one_second_are_both_recorded_before_anything_is_deleted():
    model = elastic(room=3)
    await model.settle_until_created()
    model.tick()
    model.now += 60
    await model.step()
    assert model.status.worker.members == "0-2"
    del model.pods["mnist-worker-3"]
    model.change("mnist-worker-2", phase=PodPhase.PENDING, node="", address="", reason="Unschedulable")
    await model.step()
    assert model.status.worker.members == "0-1"


async def test_when_a_node_dies_without_a_spare_it_goes_on_smaller():
    model = await running(room=4)
    model.lose_node("mnist-worker-1")
    await model.settle()
    status = model.status
    assert (status.phase, status.worker.ready, status.disruptions) == (Phase.RUNNING, "3/4", 1)
    assert sorted(ranks(model).values()) == ["0", "1", "2"]
    assert events(model)[-1] == "ScaledDown"


async def test_a_failure_of_a_smaller_job_does_not_make_it_wait_for_room_again():
    model = await running(room=3)
    begun = model.now
    model.end("mnist-worker-1", 1)
    await model.settle()
    assert (model.status.phase, model.status.restarts, model.status.worker.ready) == (Phase.RUNNING, 1, "3/4")
    assert model.now - begun < 25


async def test_asking_for_more_workers_does_not_stop_training_before_there_is_room():
    model = await running(room=3, workers=3)
    trains = {pod.uid for pod in model.pods.values()}
    model.edit(workers=4, **ELASTIC)
    await model.settle()
    assert trains < {pod.uid for pod in model.pods.values()}
    assert (model.status.attempt, model.status.worker.ready) == (1, "3/4")
    model.capacity = 4
    await pass_time(model, 1)
    assert (model.status.attempt, model.status.worker.ready, model.status.restarts) == (2, "4/4", 0)


async def test_a_job_that_has_just_become_smaller_looks_for_room_at_once_when_it_is_scaled():
    model = await running(room=2, workers=3)
    assert model.status.worker.ready == "2/3"
    model.capacity = 4
    model.edit(workers=4, **ELASTIC)
    await model.settle()
    assert (model.status.attempt, model.status.worker.ready) == (2, "4/4")


async def test_asking_for_fewer_workers_restarts_the_job_with_these():
    model = await running(room=4)
    model.edit(workers=2, **ELASTIC)
    await model.settle()
    assert (model.status.attempt, model.status.worker.ready, sorted(model.pods)) == (
        2,
        "2/2",
        ["mnist-worker-0", "mnist-worker-1"],
    )
    assert "scaled down from 4 to 2 workers" in model.events[-1].message


async def test_a_smaller_job_that_is_asked_for_its_actual_size_is_not_restarted():
    model = elastic(room=3)
    await model.settle_until_created()
    model.fits_nowhere("mnist-worker-1")
    for index in (0, 2, 3):
        model.schedule(f"mnist-worker-{index}")
        model.change(f"mnist-worker-{index}", phase=PodPhase.WAITING, address=f"10.1.0.{index}")
    await model.settle()
    model.edit(workers=3, **ELASTIC)
    await model.settle()
    assert (model.status.phase, model.status.attempt, model.status.worker.ready) == (Phase.RUNNING, 1, "3/3")
    assert model.status.worker.members == "0,2-3"


async def test_a_template_changed_after_a_crd_upgrade_does_not_restart_a_smaller_job():
    model = await running(room=3)
    model.edit(workers=4, **ELASTIC, ttlSecondsAfterFinished=60)
    await model.settle()
    assert (model.status.phase, model.status.attempt) == (Phase.RUNNING, 1)


async def test_a_gang_needs_its_servers_and_as_many_workers_as_requested():
    model = await running(room=None, ps=2, schedulingPolicy={})
    (group,) = [one for one in model.done if isinstance(one, Create) and one.kind is Kind.POD_GROUP]
    assert group.manifest["spec"]["minMember"] == 4
