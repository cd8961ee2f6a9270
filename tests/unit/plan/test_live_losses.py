"""Live parameter-server workers: what a loss costs, how long a worker waits for its next pod, what the message says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.plan import Plan, PodPhase, plan, times
from paddlejob.plan.world import LogReading, Rejection
from tests.support.builders import NOON, all_pods, created, deleted, job, recorded, world

TRAINED = LogReading(attempt=1, step=20, metrics={"loss": 0.5})


def training(*, replacements: str = "", restarts: int = 0, built: int = 3, **spec: Any) -> PaddleJob:
    status = {
        "phase": "Running",
        "reason": "Running",
        "attempt": 1,
        "publishedAttempt": 1,
        "observedGeneration": 1,
        "startTime": times.format(NOON - 1000),
        "worker": {"replicas": built},
        "replacements": replacements,
        "restarts": restarts,
    }
    shape = {"ps": 1, "workers": 3, "elastic": 1, "withGloo": 0, "startupDeadlineSeconds": 100}
    return job(**shape | spec, status=status)


def decide(made: PaddleJob, changed: dict[str, dict[str, Any] | None], now: float = NOON, **seen: Any) -> Plan:
    """Plan with all pods running but these: with other fields, or gone."""
    pods = [
        replace(one, **(changed.get(one.name) or {})) for one in all_pods(made) if changed.get(one.name, {}) is not None
    ]
    return plan(made, world(*pods, environments={1: "uid"}, **{"logs": TRAINED} | seen), now)


FAILED = {"phase": PodPhase.FAILED, "exit_code": 1, "message": "KeyError: 7", "created": NOON}
EVICTED = {"phase": PodPhase.FAILED, "disrupted": True, "reason": "Evicted", "message": "node is drained"}
STUCK = {"phase": PodPhase.PENDING, "scheduling_since": NOON - 100}


@pytest.mark.parametrize(
    ("lost", "counters", "counted"),
    [
        (FAILED, (1, 0, 0), "restart 1 of 3"),
        (EVICTED, (0, 1, 0), "disruption 1, not counted as a failure"),
        (None, (0, 1, 0), "disruption 1, not counted as a failure"),
        (STUCK, (0, 0, 1), "time 1, not counted as a failure"),
    ],
)
def test_each_kind_of_loss_has_its_counter(lost: dict[str, Any] | None, counters: tuple[int, int, int], counted: str):
    decided = decide(training(), {"mnist-worker-1": lost})
    status = decided.status
    assert (status.restarts, status.disruptions, status.startupTimeouts) == counters
    assert f"replacing only its pod ({counted}), the other workers keep training" in status.message
    assert (status.phase, status.reason, status.replacements) == (Phase.RUNNING, "WorkerReplaced", "worker-1:1+")
    assert deleted(decided) == ([] if lost is None else ["mnist-worker-1"])
    assert decided.wake_at == NOON
    (event,) = recorded(decided)
    assert (event.reason, event.warning, event.message) == ("WorkerReplaced", True, status.message)


def test_a_worker_that_is_starting_has_until_its_deadline():
    decided = decide(training(), {"mnist-worker-1": {**STUCK, "scheduling_since": NOON - 99}})
    assert (decided.status.startupTimeouts, decided.wake_at) == (0, NOON + 1)
    message = decide(training(), {"mnist-worker-1": STUCK}).status.message
    assert message.startswith("mnist-worker-1 did not start on node node-1 in 100 s; check its image")


def test_of_several_losses_the_message_names_a_failure_and_its_output_comes_last():
    status = decide(training(), {"mnist-worker-1": EVICTED, "mnist-worker-2": FAILED}).status
    assert status.message.startswith("KeyError: 7 (worker 2, exit status 1); ")
    assert "replacing only its pod and 1 more (restart 1 of 3)" in status.message
    assert status.message.endswith("\nKeyError: 7")
    assert (status.restarts, status.disruptions) == (1, 1)


@pytest.mark.parametrize(("before", "seconds"), [(1, 4), (2, 8), (3, 16), (4, 32), (5, 60), (9, 60)])
def test_a_worker_that_fails_again_waits_longer_each_time_up_to_a_minute(before: int, seconds: int):
    made = training(replacements=f"worker-1:{before}", backoffLimit=20)
    lost = {**FAILED, "replacement": before, "created": NOON}
    early = decide(made, {"mnist-worker-1": lost}, now=NOON + seconds - 1)
    assert (deleted(early), early.wake_at, early.status.restarts) == ([], NOON + seconds, 0)
    assert f"its pod is replaced at {times.format(NOON + seconds)}" in early.status.message
    assert early.status.message.endswith("\nKeyError: 7")
    assert (early.status.phase, early.status.reason) == (Phase.RUNNING, "ProgramFailed")
    assert deleted(decide(made, {"mnist-worker-1": lost}, now=NOON + seconds)) == ["mnist-worker-1"]


@pytest.mark.parametrize("lost", [None, {"deletion_due": NOON + 30}, {"disrupted": True, "reason": "Evicted"}])
def test_a_worker_that_was_lost_while_it_ran_is_replaced_at_once_however_often(lost: dict[str, Any] | None):
    made = training(replacements="worker-1:4")
    seen = None if lost is None else {**lost, "replacement": 4, "created": NOON}
    status = decide(made, {"mnist-worker-1": seen}).status
    assert (status.disruptions, status.replacements) == (1, "worker-1:5+")


@pytest.mark.parametrize(("restarts", "ends"), [(2, False), (3, True)])
def test_one_failure_more_than_the_limit_ends_the_job(restarts: int, ends: bool):
    status = decide(training(restarts=restarts), {"mnist-worker-1": FAILED}).status
    assert (status.phase is Phase.FAILED) is ends
    if ends:
        assert (
            status.headline == "KeyError: 7 (worker 1, exit status 1); see its log; failed 4 times, backoffLimit is 3"
        )


def test_with_a_limit_of_zero_the_first_failure_ends_the_job():
    status = decide(training(backoffLimit=0), {"mnist-worker-1": FAILED}).status
    assert status.headline.endswith("; failed once, backoffLimit is 0")


def test_failures_of_several_workers_at_once_all_count():
    status = decide(training(backoffLimit=1), {"mnist-worker-1": FAILED, "mnist-worker-2": FAILED}).status
    assert (status.phase, status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert "; failed 2 times" in status.headline


def test_a_command_that_does_not_exist_ends_the_job_at_once():
    lost = {"phase": PodPhase.FAILED, "exit_code": 127, "message": "sh: python4: not found"}
    status = decide(training(), {"mnist-worker-1": lost}).status
    assert (status.phase, status.reason) == (Phase.FAILED, "CommandNotFound")


@pytest.mark.parametrize(
    ("logs", "rebuilt"),
    [
        (None, True),
        (replace(TRAINED, attempt=2), True),
        (replace(TRAINED, metrics={}), True),
        (replace(TRAINED, step=None), True),
        (replace(TRAINED, step=None, epoch=1), False),
        (LogReading(attempt=1, steps_per_second=2.0), False),
        (TRAINED, False),
    ],
)
def test_the_first_worker_is_replaced_alone_only_if_it_is_known_to_have_trained(logs: LogReading | None, rebuilt: bool):
    status = decide(training(), {"mnist-worker-0": EVICTED}, logs=logs).status
    assert (status.attempt, status.disruptions) == (2 if rebuilt else 1, 1)


def test_a_first_worker_that_never_started_is_replaced_alone():
    assert decide(training(), {"mnist-worker-0": STUCK}, logs=None).status.attempt == 1


@pytest.mark.parametrize(
    "server",
    [{"phase": PodPhase.SUCCEEDED}, {"deletion_due": NOON + 30}, {"disrupted": True, "reason": "Evicted"}, None],
)
def test_a_server_that_is_gone_or_about_to_go_rebuilds_the_job(server: dict[str, Any] | None):
    assert decide(training(), {"mnist-worker-1": FAILED, "mnist-ps-0": server}).status.attempt == 2


def test_a_worker_that_joins_is_created_and_reported_until_its_pod_is_there():
    made = training(replacements="worker-1:1+")
    decided = decide(made, {"mnist-worker-1": None})
    assert (created(decided), deleted(decided)) == (["mnist-worker-1"], [])
    assert (decided.status.reason, decided.status.disruptions) == ("WorkerJoining", 0)
    assert decided.status.message == "creating pod mnist-worker-1; the other workers keep training"
    seen = decide(made, {"mnist-worker-1": {"replacement": 1}})
    assert (seen.status.replacements, seen.status.reason) == ("worker-1:1", "Running")


def test_the_name_of_a_pod_that_still_ends_is_not_used():
    made = training(replacements="worker-1:1+")
    decided = decide(made, {"mnist-worker-1": {"deletion_due": NOON + 30}})
    assert created(decided) == []
    assert decided.status.phase is Phase.RUNNING


def test_why_a_worker_cannot_join_is_the_reason_of_the_job():
    made = training(replacements="worker-1:1+")
    rejection = Rejection("mnist-worker-1", "Forbidden", "exceeded quota: pods", NOON - 1)
    decided = decide(made, {"mnist-worker-1": None}, rejections=(rejection,))
    assert (created(decided), decided.status.reason, decided.status.phase) == ([], "QuotaExceeded", Phase.RUNNING)
    assert decide(training(), {}, rejections=(rejection,)).status.reason == "Running"


@pytest.mark.parametrize(
    ("built", "wanted", "reason", "record", "message"),
    [
        (
            3,
            5,
            "WorkersAdded",
            "worker-3:0+,worker-4:0+",
            "scaled from 3 to 5 workers: 2 to join, the others keep training",
        ),
        (
            3,
            1,
            "WorkersRemoved",
            "worker-1:1,worker-2:1",
            "scaled from 3 to 1 workers: 2 to leave, the others keep training",
        ),
    ],
)
def test_scaling_is_recorded_before_a_pod_is_created_and_is_an_event(
    built: int, wanted: int, reason: str, record: str, message: str
):
    made = training(built=built, workers=wanted)
    pods = all_pods(training())
    decided = plan(made, world(*pods, environments={1: "uid"}, logs=TRAINED), NOON)
    assert (decided.status.reason, decided.status.message) == (reason, message)
    assert (decided.status.replacements, decided.status.phase) == (record, Phase.RUNNING)
    assert (created(decided), decided.wake_at) == ([], NOON)
    assert deleted(decided) == (["mnist-worker-1", "mnist-worker-2"] if wanted < built else [])
    events = recorded(decided)
    assert [(one.reason, one.warning) for one in events] == [(reason, False)]


def test_a_worker_that_was_joining_keeps_joining_when_others_are_added():
    made = training(replacements="worker-2:1+", workers=4)
    status = decide(made, {"mnist-worker-2": None, "mnist-worker-3": None}).status
    assert status.replacements == "worker-2:1+,worker-3:0+"


def test_a_worker_that_has_succeeded_is_not_replaced():
    done = {"phase": PodPhase.SUCCEEDED, "exit_code": 0}
    decided = decide(training(), {"mnist-worker-1": done})
    assert (deleted(decided), created(decided), decided.status.restarts) == ([], [], 0)


@pytest.mark.parametrize(
    ("action", "lost", "phase", "counters"),
    [
        ("Ignore", FAILED, Phase.RUNNING, (0, 0, 1)),
        ("Fail", FAILED, Phase.FAILED, (0, 0, 0)),
        ("Restart", FAILED, Phase.RUNNING, (1, 0, 0)),
        ("Ignore", EVICTED, Phase.RUNNING, (0, 1, 0)),
        ("Fail", EVICTED, Phase.FAILED, (0, 0, 0)),
        ("Restart", EVICTED, Phase.RUNNING, (1, 0, 0)),
    ],
)
def test_a_rule_of_the_failure_policy_decides_what_the_loss_of_a_worker_costs(
    action: str, lost: dict[str, Any], phase: Phase, counters: tuple[int, int, int]
):
    rules = [{"action": action, "onReasons": ["ProgramFailed", "Evicted"]}]
    status = decide(training(failurePolicy={"rules": rules}), {"mnist-worker-1": lost}).status
    assert (status.phase, (status.restarts, status.disruptions, status.ignoredFailures)) == (phase, counters)


def test_a_rule_about_exit_statuses_looks_at_the_worker_that_failed():
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}]
    made = training(failurePolicy={"rules": rules})
    changed = {"mnist-worker-1": FAILED, "mnist-worker-2": {**FAILED, "exit_code": 7}}
    status = decide(made, changed).status
    assert (status.restarts, status.ignoredFailures) == (1, 1)
