"""Progress and goodput in the status: what a reading changes, and what survives restarts, suspension and upgrades."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase, Progress, Status
from paddlejob.plan import PodPhase, plan, times
from paddlejob.plan.world import LogReading
from tests.support.builders import NOON, all_pods, having, job, pod, running, world
from tests.support.model import Model


def reading(step: int, at: float, **more: Any) -> LogReading:
    return LogReading(attempt=1, step=step, highest=step, step_at=at, ahead_since=NOON, last_output=at, **more)


def begun(**status: Any) -> PaddleJob:
    """A job that started at noon."""
    made = running(job(**status.pop("spec", {})))
    return having(made, made.status.model_copy(update={"startTime": times.format(NOON), **status}))


def seen(made: PaddleJob, logs: LogReading | None, now: float) -> Status:
    return plan(made, world(*all_pods(made), environments={made.status.attempt: "uid"}, logs=logs), now).status


def progress(status: Status) -> Progress:
    assert status.progress is not None
    return status.progress


def test_a_reading_is_shown_with_the_expected_end():
    logs = reading(100, NOON + 50, total_steps=400, metrics={"loss": 0.5}, steps_per_second=2.0, steps_left=300)
    found = progress(seen(begun(), logs, NOON + 50))
    assert (found.step, found.totalSteps, found.metrics) == (100, 400, {"loss": 0.5})
    assert times.parse(found.eta) - NOON == 50 + 150
    assert (found.highestStep, found.stepAtStart) == (100, None)


@pytest.mark.parametrize(("left", "shown"), [(7, 7), (119, 119), (121, 130), (601, 610), (3601, 3660)])
def test_the_expected_end_is_known_the_better_the_nearer_it_is(left: int, shown: int):
    logs = reading(100, NOON, total_steps=100 + left, steps_per_second=1.0, steps_left=left)
    assert times.parse(progress(seen(begun(), logs, NOON)).eta) - NOON == shown


def test_a_job_without_a_reading_keeps_its_progress():
    made = begun(progress=Progress(step=5, highestStep=5))
    assert progress(seen(made, None, NOON + 60)).step == 5


def test_a_reading_of_another_attempt_is_ignored():
    assert seen(begun(attempt=2, publishedAttempt=2), reading(5, NOON), NOON + 60).progress is None


def test_time_counts_while_steps_go_beyond_the_highest():
    made, goodput = begun(), []
    for second in (10, 20, 30, 40, 50, 60):
        step = second if second <= 30 else 30
        status = seen(made, reading(step, NOON + min(second, 30)), NOON + second)
        made = having(made, status)
        goodput.append(status.goodput)
    assert progress(made.status).productiveSeconds == 30
    assert goodput == [100, 100, 100, 75, 60, 50]


def test_a_new_attempt_keeps_the_highest_step_and_counts_only_beyond_it():
    made = begun()
    made = having(made, seen(made, reading(100, NOON + 50), NOON + 50))
    failed = all_pods(made, PodPhase.FAILED, exit_code=1)
    status = plan(made, world(*failed, environments={1: "uid"}), NOON + 60).status
    found = progress(status)
    assert (found.step, found.stepAtStart, found.highestStep, found.productiveSeconds) == (None, 100, 100, 50)
    made = having(made, status.model_copy(update={"publishedAttempt": 2}))
    behind = replace(reading(80, NOON + 75), attempt=2, ahead_since=None)
    found = progress(seen(made, behind, NOON + 80))
    assert (found.step, found.highestStep, found.productiveSeconds) == (80, 100, 50)
    ahead = replace(reading(130, NOON + 95), attempt=2, ahead_since=NOON + 85)
    status = seen(made, ahead, NOON + 100)
    assert (progress(status).highestStep, progress(status).productiveSeconds) == (130, 60)
    assert status.goodput == 60


def test_a_failure_right_after_a_reading_still_counts_the_steps_that_were_read():
    made = begun()
    failed = all_pods(made, PodPhase.FAILED, exit_code=1)
    status = plan(made, world(*failed, environments={1: "uid"}, logs=reading(9, NOON + 5)), NOON + 6).status
    assert (progress(status).highestStep, progress(status).stepAtStart) == (9, 9)


def test_a_new_time_of_the_last_output_alone_is_no_news_for_five_minutes():
    made = begun()
    made = having(made, seen(made, LogReading(1, last_output=NOON), NOON + 1))
    assert progress(made.status).lastOutputTime == times.format(NOON)
    assert seen(made, LogReading(1, last_output=NOON + 299), NOON + 300) == made.status
    later = seen(made, LogReading(1, last_output=NOON + 300), NOON + 301)
    assert progress(later).lastOutputTime == times.format(NOON + 300)


def test_a_job_that_an_older_operator_started_gets_progress_and_its_earlier_time_is_left_out():
    made = running(job())
    old = plan(made, world(*all_pods(made), environments={1: "uid"}), NOON - 5000).status
    made = having(made, old.model_copy(update={"startTime": times.format(NOON - 5000)}))
    decided = plan(made, world(*all_pods(made), environments={1: "uid"}, logs=reading(10, NOON + 30)), NOON + 30)
    assert decided.actions == (), "nothing is restarted"
    assert (progress(decided.status).step, decided.status.goodput) == (10, 100)


def test_a_finished_job_keeps_its_goodput():
    made = begun()
    made = having(made, seen(made, reading(100, NOON + 50), NOON + 50))
    done = world(*all_pods(made, PodPhase.SUCCEEDED), environments={1: "uid"})
    made = having(made, plan(made, done, NOON + 100).status)
    assert (made.status.phase, made.status.goodput) == (Phase.COMPLETED, 50)
    assert plan(made, world(pod(made, "worker", 0, PodPhase.SUCCEEDED)), NOON + 1000).status.goodput == 50


async def test_time_in_which_a_job_is_suspended_is_left_out():
    model = Model(job(workers=2))
    await model.settle()
    begun_at = times.parse(model.status.startTime)
    model.logs = replace(reading(50, begun_at + 60), ahead_since=begun_at)
    model.now = begun_at + 60
    await model.settle()
    model.edit(workers=2, suspend=True)
    await model.settle()
    suspended = model.status
    assert (suspended.phase, progress(suspended).highestStep) == (Phase.SUSPENDED, 50)
    model.now += 10_000
    model.edit(workers=2)
    await model.settle()
    assert progress(model.status).productiveSeconds == 60
    assert (model.status.goodput or 0) > 30, "ten thousand seconds of suspension do not count"
