"""How soon a job restarts, how often, and what counts as progress."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase, Progress
from paddlejob.plan import PodPhase, times
from paddlejob.plan.restarts.backoff import LONGEST_DELAY, SHORTEST_ATTEMPT
from tests.support.builders import job
from tests.support.model import Model

MINUTE = 60.0


async def running(**options: object) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING, model.status
    return model


def at_step(model: Model, step: int, *, after: float = SHORTEST_ATTEMPT) -> None:
    """The log of worker 0 shows a step, some seconds later."""
    model.now += after
    before = model.status.progress or Progress()
    highest = max(step, before.highestStep or 0)
    progress = before.model_copy(update={"step": step, "highestStep": highest})
    assert model.job is not None
    model.job = model.job.model_copy(update={"status": model.status.model_copy(update={"progress": progress})})


async def fail(model: Model, *, disruption: bool = False) -> float:
    """Worker 1 fails; returns the seconds until the next attempt may begin."""
    if disruption:
        model.change("mnist-worker-1", phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
    else:
        model.end("mnist-worker-1", 1)
    before = model.now
    await model.step()
    begins = model.status.nextRestartTime
    await model.settle()
    return times.parse(begins) - before if begins else 0.0


async def test_after_an_attempt_that_came_further_the_restart_does_not_wait():
    model = await running()
    for step in (100, 200, 300, 400, 500):
        at_step(model, step)
        assert await fail(model) == 0
    assert model.status.phase is Phase.RUNNING
    assert (model.status.restarts, model.status.failuresWithoutProgress) == (5, 1)


async def test_ten_faults_a_minute_apart_the_tenth_recovery_takes_no_longer_than_the_first():
    for disruption in (False, True):
        model = await running()
        took = []
        for number in range(10):
            at_step(model, 100 * (number + 1))
            model.now += MINUTE
            begun = model.now
            await fail(model, disruption=disruption)
            took.append(model.now - begun)
            assert model.status.phase is Phase.RUNNING
        assert took[-1] == took[0] == max(took)


async def test_a_program_that_counts_up_by_itself_and_crashes_at_once_is_restarted_ever_more_slowly():
    model = await running()
    delays = []
    for step in range(1, 12):
        at_step(model, step, after=0.2)
        delays.append(round(await fail(model)))
    assert delays == [2, 4, 8, 16, 32, 64, 128, 256, *[LONGEST_DELAY] * 3]
    assert (model.status.phase, model.status.failuresWithoutProgress) == (Phase.RUNNING, 1)
    at_step(model, 12)
    assert await fail(model) == 0


async def test_without_progress_the_delay_doubles_and_progress_ends_the_series():
    model = await running(backoffLimit=99)
    at_step(model, 100)
    delays = [round(await fail(model)) for _ in range(10)]
    assert delays == [0, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    at_step(model, 101)
    assert [round(await fail(model)) for _ in range(2)] == [0, 2]


async def test_failures_and_disruptions_without_progress_are_one_series():
    model = await running(backoffLimit=99)
    at_step(model, 7)
    assert [round(await fail(model, disruption=number % 2 == 0)) for number in range(5)] == [0, 2, 4, 8, 16]
    assert (model.status.restarts, model.status.disruptions) == (2, 3)


async def test_the_same_step_after_going_back_to_the_checkpoint_is_no_progress():
    model = await running(backoffLimit=99)
    at_step(model, 100)
    await fail(model)
    for step in (80, 90, 100):
        at_step(model, step)
    assert round(await fail(model)) == 2


async def test_a_program_that_crashes_at_the_same_step_fails_however_long_each_attempt_ran():
    model = await running(backoffLimit=3)
    for _ in range(4):
        at_step(model, 100)
        model.now += 10 * MINUTE
        await fail(model)
    assert (model.status.phase, model.status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert "failed 4 times since step 100 was reached, backoffLimit is 3" in model.status.message
    assert "second phase" not in model.status.message
    assert model.status.restarts == 3


async def test_a_job_that_fails_in_a_phase_that_counts_anew_says_how_to_make_its_progress_known():
    model = await running(backoffLimit=1)
    at_step(model, 1000)
    await fail(model)
    at_step(model, 40)
    await fail(model)
    assert model.status.phase is Phase.FAILED
    assert "its last attempt reached step 40: if it starts counting again in a second phase" in model.status.message
    assert "spec.progress.pattern" in model.status.message


async def test_where_no_step_is_known_every_failure_counts_but_a_minute_of_training_ends_the_delay():
    model = await running(backoffLimit=3)
    assert round(await fail(model)) == 2
    model.now += MINUTE
    assert await fail(model) == 0
    assert round(await fail(model)) == 2
    model.now += 10 * MINUTE
    await fail(model)
    assert model.status.phase is Phase.FAILED
    assert "failed 4 times, backoffLimit is 3" in model.status.message


async def test_failures_before_the_first_step_do_not_count_once_the_job_has_trained():
    model = await running(backoffLimit=2)
    await fail(model)
    await fail(model)
    at_step(model, 1)
    await fail(model)
    assert (model.status.phase, model.status.restarts) == (Phase.RUNNING, 3)
    event = [one for one in model.events if one.reason == "ProgramFailed"][-1]
    assert "restart 3 now, 1 of 2 since step 1 was reached" in event.message


async def test_progress_in_an_attempt_that_a_disruption_ended_counts_too():
    model = await running(backoffLimit=2)
    at_step(model, 1)
    await fail(model)
    await fail(model)
    assert model.status.failuresWithoutProgress == 2
    at_step(model, 2)
    await fail(model, disruption=True)
    assert model.status.failuresWithoutProgress == 0
    await fail(model)
    assert model.status.phase is Phase.RUNNING


async def test_a_suspended_job_keeps_what_it_gained():
    model = await running(backoffLimit=1)
    at_step(model, 50)
    assert model.job is not None
    model.job = model.job.model_copy(update={"spec": model.job.spec.model_copy(update={"suspend": True})})
    await model.settle()
    assert model.status.progress is not None and model.status.progress.stepAtStart == 50


@pytest.mark.parametrize(("now", "text"), [(1.0, "00:00:01.000Z"), (1.0001, "00:00:01.001Z"), (61.5, "00:01:01.500Z")])
def test_the_time_of_a_restart_is_exact_and_never_early(now: float, text: str):
    assert times.format_exact(now) == f"1970-01-01T{text}"
    assert times.parse(times.format_exact(now)) >= now


async def test_what_may_yet_be_created_is_waited_for_with_a_reason_and_without_a_restart():
    model = Model(job(workers=2))
    await model.settle_until_created()
    for name in list(model.pods):
        model.schedule(name)
        model.change(name, reason="CreateContainerConfigError", message='configmap "hyperparameters" not found')
    for _ in range(9):
        await model.step()
        model.now += MINUTE
    assert (model.status.phase, model.status.reason) == (Phase.PENDING, "CreateContainerConfigError")
    assert "hyperparameters" in model.status.message
    assert (model.status.attempt, model.status.restarts, model.status.disruptions) == (1, 0, 0)
    for name in list(model.pods):
        model.change(name, reason="", message="")
    await model.settle()
    assert model.status.phase is Phase.RUNNING
