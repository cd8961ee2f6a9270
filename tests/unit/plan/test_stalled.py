"""Hang detection: when silence restarts a job, and when it does not."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest

from paddlejob.api.types import PaddleJob, Phase
from paddlejob.engine.log_follower import LogFollower
from paddlejob.plan import Delete, Kind, PodPhase, plan
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser
from tests.support.builders import NOON, all_pods, having, job, pod, recorded, running, template, world

SILENT = LogReading(1, silent_seconds=61.0, last_lines="step: 7 loss: 0.5", processes="worker-1: stopped by a signal")


def job_with_limit(seconds: int | None = 60, **spec: object) -> PaddleJob:
    return running(job(workers=2, **({} if seconds is None else {"stallSeconds": seconds}), **spec))


def decided(made: PaddleJob, logs: LogReading | None, **pods: object):
    return plan(made, world(*all_pods(made, **pods), environments={1: "uid"}, logs=logs), NOON)


def test_silence_of_all_workers_for_that_long_restarts_the_job_as_a_failure():
    status = decided(job_with_limit(), SILENT).status
    assert (status.phase, status.reason, status.restarts, status.attempt) == (Phase.RESTARTING, "Stalled", 1, 2)
    assert "no worker printed a line for 61 s (stallSeconds is 60)" in status.headline
    assert "raise stallSeconds" in status.headline
    assert "step: 7 loss: 0.5" in status.message
    assert "stopped by a signal" in status.message


def test_half_of_the_time_before_it_is_restarted_the_job_says_so():
    quiet = replace(SILENT, silent_seconds=30.0)
    early = decided(job_with_limit(), replace(SILENT, silent_seconds=29.0))
    assert early.status.reason == "Running"
    half = decided(job_with_limit(), quiet)
    assert (half.status.phase, half.status.reason, half.status.restarts) == (Phase.RUNNING, "Silent", 0)
    assert "no worker printed a line for 30 s; after 60 s (stallSeconds) the job is restarted" in half.status.message
    assert [(one.reason, one.warning) for one in recorded(half)] == [("Silent", True)]
    assert decided(job_with_limit(), replace(quiet, attempt=2)).status.reason == "Running", "of another attempt"
    assert decided(job_with_limit(None), quiet).status.reason == "Running", "it is not restarted"
    again = decided(having(job_with_limit(), half.status), replace(quiet, silent_seconds=0.0))
    assert again.status.reason == "Running"


@pytest.mark.parametrize("seconds", [30.0, 61.0], ids=["before", "when it is restarted"])
def test_a_progress_bar_that_a_node_does_not_show_is_named(seconds: float):
    drawing = replace(SILENT, silent_seconds=seconds, draws_bar=True)
    made = job_with_limit()
    message = decided(made, drawing).status.message
    assert "worker 0 redraws a progress bar" in message and "print whole lines" in message
    here = world(*all_pods(made), environments={1: "uid"}, logs=drawing, one_machine=True)
    assert "progress bar" not in plan(made, here, NOON).status.message, "this machine shows every byte"


def test_a_program_that_has_printed_nothing_at_all_may_only_draw_a_bar():
    nothing = replace(SILENT, last_lines="")
    message = decided(job_with_limit(), nothing).status.message
    assert "PYTHONUNBUFFERED=1" in message and "if it only redraws a progress bar" in message


def test_a_job_that_hangs_again_and_again_fails():
    made = job_with_limit(backoffLimit=0)
    status = decided(made, SILENT).status
    assert (status.phase, status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert "stallSeconds is 60" in status.message


@pytest.mark.parametrize(
    ("seconds", "logs"),
    [
        (None, SILENT),
        (62, SILENT),
        (60, None),
        (60, replace(SILENT, silent_seconds=None)),
        (60, replace(SILENT, attempt=2)),
    ],
    ids=["not asked for", "not long enough", "not read", "not all looked at", "another attempt"],
)
def test_otherwise_silence_is_no_reason(seconds: int | None, logs: LogReading | None):
    assert decided(job_with_limit(seconds), logs).status.restarts == 0


@pytest.mark.parametrize("phase", [PodPhase.PENDING, PodPhase.WAITING])
def test_a_pod_that_has_not_started_yet_explains_the_silence(phase: PodPhase):
    made = job_with_limit()
    pods = (pod(made, "worker", 0), pod(made, "worker", 1, phase))
    assert plan(made, world(*pods, environments={1: "uid"}, logs=SILENT), NOON).status.restarts == 0


def test_a_job_whose_workers_are_replaced_alone_is_restarted_as_a_whole():
    made = job_with_limit(ps=1, elastic=1, withGloo=0)
    status = decided(made, SILENT).status
    assert (status.reason, status.restarts, status.attempt) == ("Stalled", 1, 2)


def test_a_worker_that_failed_is_the_reason_and_not_the_silence_of_the_others():
    made = job_with_limit()
    failed = pod(made, "worker", 1, PodPhase.FAILED, exit_code=3)
    view = world(all_pods(made)[0], failed, environments={1: "uid"}, logs=SILENT)
    assert plan(made, view, NOON).status.reason == "ProgramFailed"


def test_a_worker_that_has_succeeded_is_left_out():
    made = job_with_limit()
    pods = (pod(made, "worker", 0, PodPhase.SUCCEEDED), pod(made, "worker", 1))
    assert plan(made, world(*pods, environments={1: "uid"}, logs=SILENT), NOON).status.restarts == 1


def test_processes_that_hang_are_killed_after_five_seconds_or_sooner_if_the_template_says_so():
    def graces(made: PaddleJob) -> set[int | None]:
        actions = decided(made, SILENT).actions
        return {one.grace for one in actions if isinstance(one, Delete) and one.kind is Kind.POD}

    assert graces(job_with_limit()) == {5}
    short = template()
    short["spec"]["terminationGracePeriodSeconds"] = 1
    assert graces(job_with_limit(worker_={"template": short})) == {1}


def test_an_hour_with_pauses_below_the_limit_has_no_false_alarm_and_a_longer_one_is_noticed_at_once():
    """Training prints every 5 s, evaluates for 50 s every few minutes, and saves a checkpoint for 59 s."""
    made, follower = job_with_limit(60), LogFollower(1, Parser(), None)
    pauses = [*[5] * 48, 50, *[5] * 48, 59]
    printing = {0, *(second for second in accumulate(pauses * 7) if second <= 3600)}
    for second in range(3601):
        if second in printing:
            follower.feed([(NOON + second, f"step: {second}")])
            follower.hear(float(second))
        follower.hear_nothing(float(second))
        if second + 1 in printing or second % 10 == 0:
            assert decided(made, follower.reading).status.restarts == 0, f"after {second} s"
    silent = max(printing)
    for second in range(3601, silent + 60):
        follower.hear_nothing(float(second))
        assert decided(made, follower.reading).status.restarts == 0
    follower.hear_nothing(silent + 60.0)
    assert decided(made, follower.reading).status.restarts == 1


def test_what_an_attempt_was_silent_does_not_carry_over_to_the_next():
    made = job_with_limit()
    after = decided(made, SILENT).status.model_copy(update={"publishedAttempt": 2, "nextRestartTime": ""})
    made = having(made, after)
    pods = all_pods(made)
    again = plan(made, world(*pods, environments={2: "uid"}, logs=SILENT), NOON + 10).status
    assert (again.phase, again.restarts) == (Phase.RUNNING, 1), "the reading is of the attempt before"
    fresh = LogFollower(2, Parser(), None)
    fresh.hear(10.0)
    fresh.hear_nothing(20.0)
    again = plan(made, world(*pods, environments={2: "uid"}, logs=fresh.reading), NOON + 20).status
    assert again.restarts == 1
