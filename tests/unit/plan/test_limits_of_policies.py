"""Where a policy begins and ends to apply: the last moment, the largest number, the pods that it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import Create, Delete, Kind, Plan, Pod, PodPhase, RecordEvent, Stop, names, plan, times
from paddlejob.plan.world import Rejection
from tests.support.builders import NOON, all_pods, job, running, world

STARTING = {"phase": "Pending", "reason": "PodsNotReady", "attempt": 1, "startTime": times.format(NOON - 5)}


def deleted(decided: Plan) -> list[str]:
    return [one.name for one in decided.actions if isinstance(one, Delete) and one.kind is Kind.POD]


def created(decided: Plan, kind: Kind) -> list[str]:
    return [one.name for one in decided.actions if isinstance(one, Create) and one.kind is kind]


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


FAILED = {"phase": "Failed", "reason": "ProgramFailed", "attempt": 1, "completionTime": times.format(NOON)}


@pytest.mark.parametrize(
    ("about", "is_stopped"),
    [
        ({}, True),
        ({"stopping": True}, False),
        ({"deletion_due": NOON + 20}, False),
        ({"phase": PodPhase.FAILED}, False),
        ({"phase": PodPhase.FAILED, "lingers": True}, True),
        ({"phase": PodPhase.PENDING}, True),
        ({"phase": PodPhase.PENDING, "node": ""}, False),
        ({"phase": PodPhase.WAITING, "node": ""}, True),
    ],
)
def test_of_a_failed_job_each_pod_that_still_runs_is_stopped_once(about: dict[str, Any], is_stopped: bool):
    made = job(status=FAILED, cleanPodPolicy="Never")
    _, pod = all_pods(made, **about)
    decided = plan(made, world(pod), NOON)
    assert [one.pod.name for one in decided.actions if isinstance(one, Stop)] == [pod.name] * is_stopped
    assert deleted(decided) == ([pod.name] if not pod.node and pod.phase is PodPhase.PENDING else [])


def test_missing_services_are_created_once_with_the_pods_that_are_missing_too():
    made = job(status=STARTING, intranet="Service")
    decided = plan(made, world(), NOON)
    assert created(decided, Kind.SERVICE) == ["mnist-peers"]
    assert created(decided, Kind.POD) == ["mnist-worker-0", "mnist-worker-1"]


def test_a_service_is_not_restored_before_the_pods_of_the_earlier_attempt_are_gone():
    made = job(intranet="Service", status={**STARTING, "attempt": 2})
    decided = plan(made, world(*all_pods(made, attempt=1, deletion_due=NOON + 20)), NOON)
    assert created(decided, Kind.SERVICE) == []


def test_the_services_of_a_finished_job_are_not_restored():
    made = job(status=FAILED, intranet="Service", cleanPodPolicy="Never")
    assert created(plan(made, world(*all_pods(made, PodPhase.FAILED)), NOON), Kind.SERVICE) == []


@pytest.mark.parametrize(("phase", "matters"), [(PodPhase.WAITING, True), (PodPhase.RUNNING, False)])
def test_a_lost_environment_that_cannot_be_restored_matters_to_pods_that_wait_for_it(phase: PodPhase, matters: bool):
    made = running(job())
    first, second = all_pods(made)
    rejection = Rejection(names.environment(made, 1), "Forbidden", "no more ConfigMaps", NOON - 1)
    status = plan(made, world(first, replace(second, phase=phase), rejections=(rejection,)), NOON).status
    assert (status.phase, "no more ConfigMaps" in status.message) == (Phase.RUNNING, matters)


def test_a_job_that_waits_says_how_many_of_its_pods_are_not_ready_and_looks_again_when_one_is_overdue():
    made = job(workers=3, status=STARTING, startupDeadlineSeconds=100)
    first, *others = all_pods(made, PodPhase.PENDING, scheduling_since=NOON - 20)
    decided = plan(made, world(replace(first, phase=PodPhase.WAITING), *others), NOON)
    assert decided.status.message.startswith("2 of 3 pods are not ready to start")
    assert decided.wake_at == NOON + 80


def failed(made: PaddleJob, **more: Any) -> tuple[Pod, ...]:
    first, second = all_pods(made)
    return replace(first, phase=PodPhase.FAILED, exit_code=7, message="boom", **more), second


@pytest.mark.parametrize(
    ("action", "phase", "counters"),
    [
        ("Fail", Phase.FAILED, (0, 0)),
        ("Ignore", Phase.RESTARTING, (0, 1)),
        ("Restart", Phase.RESTARTING, (1, 0)),
    ],
)
def test_a_rule_of_the_failure_policy_decides_what_a_failure_costs(
    action: str, phase: Phase, counters: tuple[int, int]
):
    rules = [{"action": action, "onExitCodes": {"operator": "In", "values": [7]}}]
    made = running(job(failurePolicy={"rules": rules}))
    status = plan(made, world(*failed(made), environments={1: "uid"}), NOON).status
    assert (status.phase, (status.restarts, status.ignoredFailures)) == (phase, counters)


def test_a_rule_may_restart_after_a_failure_that_would_end_the_job():
    rules = [{"action": "Restart", "onReasons": ["CommandNotFound"]}]
    ends = {Phase.FAILED: job(), Phase.RESTARTING: job(failurePolicy={"rules": rules})}
    for phase, made in ends.items():
        pods = [replace(pod, exit_code=127, message="sh: python4: not found") for pod in failed(running(made))]
        status = plan(running(made), world(*pods, environments={1: "uid"}), NOON).status
        assert (status.phase, status.reason) == (phase, "CommandNotFound")


@pytest.mark.parametrize(
    ("before", "recorded"), [("PodsNotReady", True), ("Unschedulable", False)], ids=["new", "as before"]
)
def test_a_new_reason_why_a_job_does_not_run_is_one_event(before: str, recorded: bool):
    made = job(status={**STARTING, "reason": before})
    pods = all_pods(
        made, PodPhase.PENDING, node="", address="", reason="Unschedulable", message="no node is large enough"
    )
    events = [one for one in plan(made, world(*pods), NOON).actions if isinstance(one, RecordEvent)]
    assert [(one.reason, one.warning) for one in events] == [("Unschedulable", True)] * recorded
