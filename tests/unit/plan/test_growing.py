"""An elastic job that could grow: which of its spare pods it waits for, for how long, and when it is not worth it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import Create, Kind, Plan, Pod, PodPhase, plan, times
from paddlejob.plan.world import Rejection
from tests.support.builders import NOON, deleted, job, pod, recorded, world

ENVIRONMENT = {1: "uid"}


def training(*, workers: int = 4, eta: float | None = None, resized: float | None = None, **spec: Any) -> PaddleJob:
    """It trains with workers 0 and 1, and asks for more."""
    status = {
        "phase": "Running",
        "reason": "Running",
        "attempt": 1,
        "publishedAttempt": 1,
        "observedGeneration": 1,
        "startTime": times.format(NOON - 1000),
        "worker": {"members": "0-1", "replicas": 2},
        "lastResizeTime": times.format(NOON + resized) if resized is not None else "",
        **({"progress": {"eta": times.format(NOON + eta)}} if eta is not None else {}),
    }
    return job(
        workers=workers,
        elastic=1,
        worker_={"requests": 2, "limits": 8},
        growthIntervalSeconds=300,
        startupDeadlineSeconds=100,
        status=status,
        **spec,
    )


def members(made: PaddleJob) -> list[Pod]:
    return [pod(made, "worker", index) for index in (0, 1)]


def spare(made: PaddleJob, index: int, phase: PodPhase = PodPhase.WAITING, **more: Any) -> Pod:
    placed = {"created": NOON - 20, "scheduling_since": NOON - 10, "attempt": 2}
    return pod(made, "worker", index, phase, **placed | more)


def decide(made: PaddleJob, *spares: Pod, now: float = NOON, **more: Any) -> Plan:
    return plan(made, world(*members(made), *spares, environments=ENVIRONMENT, **more), now)


def created(decided: Plan) -> list[tuple[str, str]]:
    pods = [one for one in decided.actions if isinstance(one, Create) and one.kind is Kind.POD]
    return [(one.name, one.manifest["metadata"]["labels"][contract.LABEL_ATTEMPT]) for one in pods]


def test_when_all_spares_are_ready_the_next_attempt_begins_with_them():
    made = training()
    decided = decide(made, spare(made, 2), spare(made, 3))
    status = decided.status
    assert (status.phase, status.reason, status.attempt) == (Phase.RESTARTING, "ScaledUp", 2)
    assert (status.worker.members, status.lastResizeTime) == ("0-3", times.format(NOON))
    assert deleted(decided) == ["mnist-worker-0", "mnist-worker-1"]
    (event,) = recorded(decided)
    assert (event.reason, event.warning) == ("ScaledUp", False)
    assert event.message.startswith("growing from 2 to 4 of 4 workers")


@pytest.mark.parametrize("about", [{"phase": PodPhase.PENDING}, {"address": ""}, {"deletion_due": NOON + 9}])
def test_a_spare_that_is_not_ready_is_waited_for(about: dict[str, Any]):
    made = training(workers=3)
    decided = decide(made, replace(spare(made, 2), **about))
    assert (decided.status.attempt, decided.status.phase) == (1, Phase.RUNNING)


def test_without_a_node_for_the_others_it_begins_five_seconds_after_the_last_that_found_one():
    made = training()
    waits = spare(made, 3, PodPhase.PENDING, node="", address="", reason="Unschedulable", scheduling_since=NOON - 10)
    early = decide(made, spare(made, 2, scheduling_since=NOON - 4), waits)
    assert (early.status.attempt, early.wake_at) == (1, NOON + 1)
    decided = decide(made, spare(made, 2, scheduling_since=NOON - 5), waits)
    assert (decided.status.attempt, decided.status.worker.members) == (2, "0-2")
    assert deleted(decided) == ["mnist-worker-0", "mnist-worker-1", "mnist-worker-3"]


def test_a_spare_that_starts_on_its_node_is_waited_for_until_its_deadline():
    made = training()
    starts = spare(made, 3, PodPhase.PENDING, address="", scheduling_since=NOON - 60)
    early = decide(made, spare(made, 2), starts)
    assert (early.status.attempt, early.wake_at) == (1, NOON + 40)
    assert decide(made, spare(made, 2), starts, now=NOON + 39).status.attempt == 1
    assert decide(made, spare(made, 2), starts, now=NOON + 40).status.attempt == 2


def test_the_time_that_init_containers_take_does_not_count():
    made = training(workers=3)
    starts = spare(made, 2, PodPhase.PENDING, scheduling_since=NOON - 200, init_ended=NOON - 30)
    assert decide(made, starts).wake_at == NOON + 70
    assert deleted(decide(made, replace(starts, init_ended=0.0))) == ["mnist-worker-2"]
    assert deleted(decide(made, replace(starts, init_ended=0.0, initializing=True))) == []


def test_the_deadline_of_a_spare_counts_from_its_creation_if_nothing_else_is_known():
    made = training(workers=3)
    starts = spare(made, 2, PodPhase.PENDING, scheduling_since=0.0, created=NOON - 99)
    assert deleted(decide(made, starts)) == []
    assert deleted(decide(made, starts, now=NOON + 1)) == ["mnist-worker-2"]


@pytest.mark.parametrize(
    ("about", "given_up"),
    [
        ({"phase": PodPhase.FAILED}, True),
        ({"phase": PodPhase.SUCCEEDED}, True),
        ({"phase": PodPhase.RUNNING}, True),
        ({"phase": PodPhase.PENDING, "disrupted": True}, True),
        ({"phase": PodPhase.FAILED, "deletion_due": NOON + 9}, False),
        ({"phase": PodPhase.PENDING, "node": "", "address": ""}, False),
    ],
)
def test_a_spare_that_cannot_be_used_is_deleted_and_room_is_looked_for_after_the_interval(
    about: dict[str, Any], given_up: bool
):
    made = training(workers=3)
    decided = decide(made, replace(spare(made, 2), **about))
    assert deleted(decided) == ["mnist-worker-2"] * given_up
    assert decided.status.lastResizeTime == (times.format(NOON) if given_up else "")
    assert (decided.status.phase, decided.status.attempt) == (Phase.RUNNING, 1)


@pytest.mark.parametrize(("resized", "due"), [(None, True), (-300, True), (-299, False)])
def test_spares_are_created_once_the_interval_since_the_last_change_is_over(resized: float | None, due: bool):
    decided = decide(training(resized=resized))
    assert created(decided) == ([("mnist-worker-2", "2"), ("mnist-worker-3", "2")] if due else [])
    if not due:
        assert decided.wake_at == NOON + 1


def test_only_the_spares_that_are_not_there_are_created():
    made = training()
    waits = spare(made, 2, PodPhase.PENDING, node="", address="", reason="Unschedulable")
    assert created(decide(made, waits)) == [("mnist-worker-3", "2")]


def test_after_a_rejection_a_spare_is_tried_again_when_the_interval_is_over():
    made = training(resized=-1000)
    rejection = Rejection("mnist-worker-3", "Forbidden", "exceeded quota: pods", NOON - 299)
    decided = decide(made, rejections=(rejection,))
    assert (created(decided), decided.wake_at) == ([], NOON + 1)
    assert len(created(decide(made, rejections=(replace(rejection, at=NOON - 300),)))) == 2


@pytest.mark.parametrize(("eta", "worth_it"), [(120, False), (121, True), (None, True)])
def test_growth_that_saves_no_more_than_a_minute_is_left_out(eta: float | None, worth_it: bool):
    """From 2 to 4 workers, half of the remaining time is saved."""
    made = training(eta=eta)
    assert bool(created(decide(made))) is worth_it
    decided = decide(made, spare(made, 2), spare(made, 3))
    assert decided.status.attempt == (2 if worth_it else 1)
    assert deleted(decided) == (
        ["mnist-worker-0", "mnist-worker-1"] if worth_it else ["mnist-worker-2", "mnist-worker-3"]
    )


@pytest.mark.parametrize(("eta", "grows"), [(179, False), (181, True)])
def test_what_counts_in_the_end_is_the_size_that_fits(eta: float, grows: bool):
    """From 2 to 3 workers, a third of the remaining time is saved."""
    made = training(eta=eta)
    waits = spare(made, 3, PodPhase.PENDING, node="", address="", reason="Unschedulable")
    decided = decide(made, spare(made, 2), waits)
    assert (decided.status.attempt == 2) is grows
    if not grows:
        assert deleted(decided) == ["mnist-worker-2", "mnist-worker-3"]
        assert decided.status.lastResizeTime == times.format(NOON)


def test_a_job_of_the_size_that_it_asks_for_creates_nothing():
    made = training(workers=2)
    assert decide(made).actions == ()


def test_a_job_whose_pods_do_not_all_run_yet_does_not_grow():
    made = training()
    first, second = members(made)
    status = made.status.model_copy(update={"phase": Phase.STARTING})
    seen = world(first, replace(second, phase=PodPhase.WAITING), environments=ENVIRONMENT)
    decided = plan(made.model_copy(update={"status": status}), seen, NOON)
    assert (created(decided), decided.status.phase) == ([], Phase.STARTING)
