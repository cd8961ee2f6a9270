"""The record of attempts that ended, in the status of a job."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase, times
from paddlejob.plan.past_attempts import KEPT, begin
from tests.support.builders import job
from tests.support.model import Model


async def running(**options: object) -> Model:
    model = Model(job(**options))
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    return model


async def test_an_attempt_that_fails_is_recorded_with_its_reason_and_size():
    model = await running(workers=2)
    began, model.now = model.status.startTime, model.now + 100
    model.end("mnist-worker-1", 3)
    await model.settle()
    (past,) = model.status.pastAttempts
    assert (past.attempt, past.reason, past.workers, past.failed) == (1, "ProgramFailed", 2, True)
    assert "mnist-worker-1" in past.message and "\n" not in past.message
    assert past.startTime == began and times.parse(past.endTime) - times.parse(past.startTime) >= 100
    assert begin(model.status) == past.endTime


async def test_a_job_that_never_restarts_has_no_past():
    model = await running(workers=1)
    model.end("mnist-worker-0", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED
    assert model.status.pastAttempts == ()


async def test_the_pause_of_a_suspended_job_belongs_to_no_attempt():
    model = await running(workers=2)
    model.edit(workers=2, suspend=True)
    await model.settle()
    suspended = model.now
    model.now += 1000
    model.edit(workers=2)
    await model.settle()
    (past,) = model.status.pastAttempts
    assert (past.reason, past.failed) == ("Suspended", False)
    assert times.parse(past.endTime) <= suspended
    assert times.parse(begin(model.status)) >= suspended + 1000


async def test_a_change_of_the_spec_is_no_failure():
    model = await running(workers=2)
    model.edit(workers=3)
    await model.settle()
    (past,) = model.status.pastAttempts
    assert (past.reason, past.workers, past.failed) == ("SpecChanged", 2, False)


async def test_only_the_last_attempts_are_kept():
    model = await running(workers=1)
    for _ in range(KEPT + 3):
        model.change("mnist-worker-0", phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
        await model.settle()
    assert model.status.attempt == KEPT + 4
    assert [past.attempt for past in model.status.pastAttempts] == list(range(4, KEPT + 4))
