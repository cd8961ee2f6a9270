"""What the loop leaves alone: a status that did not change, and a memory that is no longer needed."""

from __future__ import annotations

from paddlejob.api.types import Phase
from paddlejob.engine.backend import Rejected
from paddlejob.plan import Create, Kind
from paddlejob.plan.world import LogReading
from tests.support.builders import job
from tests.support.model import Model


async def reports(model: Model) -> list[str]:
    written: list[str] = []
    report = model.report

    async def note(job_, status) -> None:
        written.append(status.phase)
        await report(job_, status)

    model.report = note
    return written


async def test_where_nothing_changed_nothing_is_written():
    model = Model(job(workers=2))
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    written, done = await reports(model), len(model.done)
    for _ in range(5):
        model.now += 60
        await model.step()
    assert (written, len(model.done)) == ([], done)


async def test_the_life_of_a_healthy_job_has_no_warning():
    model = Model(job(workers=2, ps=1))
    await model.settle()
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    assert model.status.phase is Phase.COMPLETED
    assert model.events
    assert [event for event in model.events if event.warning] == []


async def test_a_failure_is_a_warning():
    model = Model(job(workers=1, backoffLimit=0))
    await model.settle()
    model.end("mnist-worker-0", 3)
    await model.settle()
    assert model.status.phase is Phase.FAILED
    assert any(event.warning for event in model.events)


async def test_services_are_created_before_the_pods_that_need_them():
    model = Model(job(workers=2, intranet="Service"))
    await model.settle()
    kinds = [action.kind for action in model.done if isinstance(action, Create)]
    assert kinds.index(Kind.POD) > max(at for at, kind in enumerate(kinds) if kind is Kind.SERVICE)


async def test_a_job_that_is_gone_is_forgotten_and_one_of_the_same_name_starts_afresh():
    model = Model(job(workers=1))
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "exceeded quota: pods")
    await model.step()
    await model.step()
    again = job(workers=1)
    model.job = again.model_copy(update={"metadata": again.metadata.model_copy(update={"uid": "another"})})
    model.rejects.clear()
    await model.step()
    assert "mnist-worker-0" in model.pods, "the rejection of the old job does not hold it back"
    model.job = None
    assert await model.step() is None


async def test_steps_alone_are_reported_only_every_nine_seconds():
    model = Model(job(workers=2))
    await model.settle()
    written = await reports(model)
    for second in range(60):
        model.logs = LogReading(1, step=second, highest=second, step_at=model.now, ahead_since=model.now)
        model.now += 1
        await model.step()
    assert 5 <= len(written) <= 7


async def test_a_failure_is_reported_at_once_with_the_steps_that_were_read_before_it():
    model = Model(job(workers=2))
    await model.settle()
    for step in (1, 2):
        model.logs = LogReading(1, step=step, highest=step, step_at=model.now, ahead_since=model.now)
        model.now += 1
        await model.step()
    model.end("mnist-worker-0", 1)
    await model.step()
    assert model.status.restarts == 1
    assert model.status.progress is not None
    assert model.status.progress.highestStep == 2
