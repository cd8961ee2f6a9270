"""An elastic job that starts with the workers that fit: when it stops waiting for others, and for which it waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import Plan, Pod, PodPhase, plan, times
from paddlejob.plan.world import Rejection
from tests.support.builders import NOON, deleted, job, pod, recorded, world

NO_NODE = {"phase": PodPhase.PENDING, "node": "", "address": "", "reason": "Unschedulable", "message": "no node"}
QUOTA = Rejection("mnist-worker-3", "Forbidden", "exceeded quota: pods", NOON - 1)


def waiting(*, workers: int = 4, requests: int = 2, members: str = "", **spec: Any) -> PaddleJob:
    status = {
        "phase": "Pending",
        "reason": "PodsNotReady",
        "attempt": 1,
        "observedGeneration": 1,
        "startTime": times.format(NOON - 100),
        "worker": {"members": members},
        "replacements": "worker-0:1",
        "templateDigest": "of-any-template",
    }
    return job(workers=workers, elastic=1, worker_={"requests": requests, "limits": 8}, status=status, **spec)


def worker(made: PaddleJob, index: int, **more: Any) -> Pod:
    placed = {"phase": PodPhase.WAITING, "created": NOON - 60, "scheduling_since": NOON - 40}
    return pod(made, "worker", index, **placed | {"replacement": int(index == 0)} | more)


def decide(made: PaddleJob, *without_node: int, now: float = NOON, **more: Any) -> Plan:
    """All workers have a node but these."""
    workers = range(made.spec.worker.replicas if made.spec.worker else 0)
    pods = [worker(made, index, **(NO_NODE if index in without_node else {})) for index in workers]
    return plan(made, world(*pods, **more), now)


def shrunk(decided: Plan) -> bool:
    return decided.status.reason == "ScaledDown"


def test_what_does_not_fit_is_left_out_and_the_record_and_an_event_say_so():
    decided = decide(waiting(), 2)
    status = decided.status
    assert (status.phase, status.reason, status.worker.members) == (Phase.PENDING, "ScaledDown", "0-1,3")
    assert (status.lastResizeTime, status.replacements) == (times.format(NOON), "")
    assert status.message.startswith(
        "training starts with 3 of 4 workers, and grows when there is room: no node (mnist-worker-2)"
    )
    assert deleted(decided) == ["mnist-worker-2"]
    (event,) = recorded(decided)
    assert (event.reason, event.warning, event.message) == ("ScaledDown", True, status.message)


@pytest.mark.parametrize(("timeout", "seconds"), [(600, 30), (20, 20)])
def test_it_waits_for_thirty_seconds_or_for_the_timeout_of_the_job_if_that_is_less(timeout: int, seconds: int):
    made = waiting(scheduleTimeoutSeconds=timeout)
    last = NOON - 40
    early = decide(made, 3, now=last + seconds - 1)
    assert (shrunk(early), early.wake_at) == (False, last + seconds)
    assert shrunk(decide(made, 3, now=last + seconds))


def test_a_pod_that_was_created_later_begins_the_wait_again():
    made = waiting()
    pods = [worker(made, index) for index in range(3)]
    late = worker(made, 3, **NO_NODE | {"created": NOON - 10})
    assert not shrunk(plan(made, world(*pods, late), NOON))
    assert shrunk(plan(made, world(*pods, late), NOON + 20))


@pytest.mark.parametrize(("without_node", "starts"), [((2, 3), True), ((1, 2, 3), False), ((), False)])
def test_it_starts_with_no_fewer_than_its_requests(without_node: tuple[int, ...], starts: bool):
    assert shrunk(decide(waiting(), *without_node)) is starts


def test_a_job_that_is_as_small_as_it_may_be_waits_for_all():
    assert not shrunk(decide(waiting(members="0-1"), 1))


@pytest.mark.parametrize(
    ("about", "starts"),
    [
        ({}, True),
        ({"nominated": True}, False),
        ({"reason": ""}, False),
        ({"reason": "SchedulingGated"}, False),
    ],
)
def test_a_worker_that_may_still_find_a_node_is_waited_for(about: dict[str, Any], starts: bool):
    made = waiting()
    pods = [worker(made, index) for index in range(3)]
    assert shrunk(plan(made, world(*pods, worker(made, 3, **NO_NODE | about)), NOON)) is starts


@pytest.mark.parametrize("about", [{"deletion_due": NOON + 9}, {"phase": PodPhase.FAILED, "exit_code": 1}])
def test_only_workers_that_can_start_with_a_rank_of_the_environment_count_as_placed(about: dict[str, Any]):
    made = waiting()
    first, second = worker(made, 0), replace(worker(made, 1), **about)
    others = [worker(made, index, **NO_NODE) for index in (2, 3)]
    assert not shrunk(plan(made, world(first, second, *others), NOON))


@pytest.mark.parametrize(("about", "starts"), [({}, True), (NO_NODE, False), (None, False)])
def test_servers_are_never_left_out(about: dict[str, Any] | None, starts: bool):
    made = waiting(ps=1)
    workers = [worker(made, index, **(NO_NODE if index == 3 else {})) for index in range(4)]
    server = [] if about is None else [pod(made, "ps", 0, PodPhase.WAITING)]
    assert shrunk(plan(made, world(*(replace(one, **about or {}) for one in server), *workers), NOON)) is starts


def test_workers_that_a_quota_does_not_admit_are_left_out():
    made = waiting()
    pods = [worker(made, index) for index in range(2)]
    decided = plan(made, world(*pods, rejections=(replace(QUOTA, name="mnist-worker-2"),)), NOON)
    assert (shrunk(decided), decided.status.worker.members) == (True, "0-1")
    assert decided.status.message.endswith("grows when there is room: exceeded quota: pods")


def test_another_rejection_than_that_of_a_quota_is_waited_for():
    made = waiting()
    pods = [worker(made, index) for index in range(3)]
    assert not shrunk(plan(made, world(*pods, rejections=(replace(QUOTA, message="bad name"),)), NOON))


def test_pods_of_an_earlier_attempt_are_cleared_first():
    made = waiting()
    pods = [worker(made, index, **(NO_NODE if index == 3 else {})) for index in range(4)]
    old = replace(worker(made, 5), name="mnist-worker-old", uid="old", attempt=0, deletion_due=NOON + 20)
    assert not shrunk(plan(made, world(*pods, old), NOON))


def test_once_training_has_begun_a_job_does_not_shrink():
    made = waiting()
    status = made.status.model_copy(update={"publishedAttempt": 1, "phase": Phase.STARTING})
    decided = decide(made.model_copy(update={"status": status}), 3)
    assert not shrunk(decided)
