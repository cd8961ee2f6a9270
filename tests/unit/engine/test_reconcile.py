"""How often the loop reports: what matters at once, mere progress seldom."""

from __future__ import annotations

from collections import Counter

import pytest

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine import reconcile
from paddlejob.engine.backend import Key, Outdated, Rejected, View
from paddlejob.engine.carry_out import MOST_IN_FLIGHT
from paddlejob.engine.reconcile import (
    LEAST_CREATES,
    LONGEST_SPACING,
    LOOK_EVERY,
    REPORTS_APART,
    RESULTS_APART,
    Reconciler,
)
from paddlejob.plan import Action, Delete, DeleteJob, PodPhase
from tests.support.builders import NOON, job, template
from tests.support.model import Model


def noting(model: Model) -> list[Status]:
    """Every status that is written from now on."""
    written: list[Status] = []
    report = model.report

    async def note(job_, status: Status) -> None:
        await report(job_, status)
        written.append(status)

    model.report = note
    return written


async def test_the_pods_of_a_new_job_are_created_before_its_first_status():
    model = Model(job(workers=2))
    written = noting(model)
    wake_at = await model.step()
    assert (len(model.pods), written) == (2, [])
    assert wake_at == model.now + REPORTS_APART, "but it is not forgotten"
    model.now = wake_at
    await model.step()
    assert [status.phase for status in written] == [Phase.PENDING]


async def test_a_new_job_whose_pod_is_rejected_says_so_at_once():
    model = Model(job())
    written = noting(model)
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "exceeded quota: pods")
    await model.step()
    await model.step()
    assert [status.reason for status in written] == ["QuotaExceeded"]


async def test_progress_is_reported_seldom_and_a_change_of_phase_at_once():
    model = Model(job(workers=3))
    await model.settle()
    model.now += 60
    written = noting(model)
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
        await model.step()
        model.now += 0.1
    assert len(written) == 1, "two workers ended within a moment"
    model.change("mnist-worker-2", phase=PodPhase.SUCCEEDED, exit_code=0)
    await model.step()
    assert written[-1].phase is Phase.COMPLETED


async def test_which_workers_are_done_is_written_soon():
    model = Model(job(workers=3))
    await model.settle()
    model.now += 60
    written = noting(model)
    model.end("mnist-worker-0", 0)
    await model.step()
    model.end("mnist-worker-1", 0)
    model.now += RESULTS_APART
    await model.step()
    assert [status.worker.finished for status in written] == ["0", "0-1"]


async def test_a_view_that_stays_old_is_looked_at_less_and_less_often():
    model = Model(job())
    await model.settle()
    model.end("mnist-worker-0", 1)

    async def conflict(job_, status: Status) -> None:
        raise Outdated

    model.report = conflict
    waits = [round(await model.step() - model.now, 2) for _ in range(5)]
    assert waits == [0, 0.1, 0.2, 0.4, 0.8]


async def test_an_action_that_was_rejected_is_not_tried_all_the_time():
    model = Model(job(ttlSecondsAfterFinished=10))
    await model.settle()
    for index in range(2):
        model.end(f"mnist-worker-{index}", 0)
    await model.settle()
    model.now += 60
    perform, tries = model.perform, []

    async def keep(job_, action) -> None:
        if isinstance(action, DeleteJob):
            tries.append(model.now)
            raise Rejected("Forbidden", "a policy keeps it")
        await perform(job_, action)

    model.perform = keep
    for _ in range(100):
        await model.step()
        model.now += 0.1
    assert len(tries) == 3, "at once, after 2 s, after 4 s more"


class SlowOnce:
    """A stopwatch by which the first write takes an hour, and the others no time."""

    def __init__(self) -> None:
        self.readings = 0

    def monotonic(self) -> float:
        self.readings += 1
        return 3600.0 if self.readings > 1 else 0.0


async def test_one_slow_write_does_not_silence_the_progress_for_long(monkeypatch):
    model = Model(job(workers=3))
    monkeypatch.setattr(reconcile, "stopwatch", SlowOnce().monotonic)
    await model.step()
    model.now += REPORTS_APART
    await model.step()
    assert model.status.worker.pending == 3
    written = noting(model)
    model.change("mnist-worker-0", phase=PodPhase.RUNNING)
    model.environments[1] = {}
    wake_at = await model.step()
    assert written == []
    assert wake_at is not None and wake_at <= model.now + LONGEST_SPACING
    model.now += LONGEST_SPACING
    await model.step()
    assert len(written) == 1


async def test_the_deadline_of_a_job_whose_pods_are_not_ready_runs_from_the_beginning():
    """Its first status may be late, but the time at which it started is in it."""
    model = Model(job(activeDeadlineSeconds=60))
    begun = model.now
    for _ in range(200):
        await model.step()
        for name in model.pods:
            model.change(name, reason="x", phase=PodPhase.PENDING)
        model.crash()
        model.now += 0.5
        if model.status.finished:
            break
    assert model.status.reason == "DeadlineExceeded"
    assert model.now - begun < 70, "although the operator never ran for long enough to report progress"


async def test_the_event_of_a_failure_is_recorded_although_a_delete_fails():
    model = Model(job())
    await model.settle()
    model.end("mnist-worker-0", 3)
    perform = model.perform

    async def stuck(job_, action) -> None:
        if isinstance(action, Delete):
            raise ConnectionError("no response")
        await perform(job_, action)

    model.perform = stuck
    with pytest.raises(ConnectionError):
        await model.step()
    model.perform = perform
    await model.settle()
    assert [event.reason for event in model.events if event.warning] == ["ProgramFailed"]


async def test_a_status_that_did_not_change_is_not_written():
    model = Model(job())
    await model.settle()
    written = noting(model)
    for _ in range(5):
        model.now += 60
        await model.step()
    assert written == []


async def test_a_job_that_is_deleted_while_it_is_built_is_noticed_at_the_next_look():
    model = Model(job(workers=500))
    perform = model.perform

    async def deleting(job_, action) -> None:
        await perform(job_, action)
        if len(model.pods) == 100:
            model.job = None

    model.perform = deleting
    await model.step()
    assert 100 <= len(model.pods) <= 100 + LOOK_EVERY + MOST_IN_FLIGHT
    assert await model.step() is None


async def test_a_large_job_gives_way_to_jobs_that_wait_and_is_built_nevertheless():
    model = Model(job(workers=100))
    waiting = [True]
    loop = Reconciler(model, clock=lambda: model.now, crowded=lambda: waiting[0])
    assert await loop.step(model.key) == model.now, "it goes on at once"
    assert len(model.pods) == LEAST_CREATES
    await loop.step(model.key)
    assert len(model.pods) == 2 * LEAST_CREATES
    waiting[0] = False
    await loop.step(model.key)
    assert len(model.pods) == 100


async def test_warnings_about_a_new_job_are_recorded_once_however_many_turns_it_takes():
    overriding = template(env=[{"name": "PADDLE_TRAINER_ID", "value": "7"}])
    model = Model(job(workers=30, worker_={"template": overriding}))
    loop = Reconciler(model, clock=lambda: model.now, crowded=lambda: True)
    for _ in range(3):
        await loop.step(model.key)
    assert len(model.pods) == 30
    assert [one.reason for one in model.events].count("EnvironmentOverridden") == 1


class Fleet:
    """Many jobs on one backend, each with a cluster of its own."""

    def __init__(self, jobs: int) -> None:
        self.models = {f"job-{number}": Model(job(f"job-{number}", workers=4)) for number in range(jobs)}
        self.written: Counter[str] = Counter()
        self.now = NOON
        self._loop = Reconciler(self, clock=lambda: self.now)

    async def observe(self, key: Key) -> View | None:
        return await self.models[key[1]].observe(key)

    async def report(self, job_: PaddleJob, status: Status) -> None:
        self.written[job_.name] += 1
        await self.models[job_.name].report(job_, status)

    def is_current(self, job_: PaddleJob) -> bool:
        return self.models[job_.name].is_current(job_)

    async def perform(self, job_: PaddleJob, action: Action) -> None:
        await self.models[job_.name].perform(job_, action)

    async def pass_seconds(self, seconds: int, *, pods_start: bool) -> None:
        for _ in range(seconds):
            for name, model in self.models.items():
                await self._loop.step(("default", name))
                model.now = self.now
                if pods_start:
                    model.tick()
            self.now += 1


@pytest.mark.parametrize(("jobs", "most"), [(100, 2), (10, 3)])
async def test_while_many_jobs_start_each_is_reported_twice_before_it_runs(jobs: int, most: int):
    fleet = Fleet(jobs)
    await fleet.pass_seconds(8, pods_start=False)
    assert sum(fleet.written.values()) == (0 if most == 2 else jobs), "mere progress waits for the pods of others"
    await fleet.pass_seconds(6, pods_start=True)
    assert {model.status.phase for model in fleet.models.values()} == {Phase.RUNNING}
    assert set(fleet.written.values()) == {most}


async def test_whether_a_job_still_exists_is_asked_once_for_many_pods():
    model = Model(job(workers=5 * LOOK_EVERY))
    asked: list[int] = []
    is_current = model.is_current

    def counting(job_: PaddleJob) -> bool:
        asked.append(len(model.pods))
        return is_current(job_)

    model.is_current = counting  # type: ignore[method-assign]
    await model.step()
    assert len(model.pods) == 5 * LOOK_EVERY
    assert (len(asked), asked[0]) == (5, 0), "a job that is gone gets no pod at all"
