"""When the status of a job is written: changes at once, mere progress later, and later still while many jobs start."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Status
from paddlejob.engine.backend import Key, View
from paddlejob.engine.reconcile import REPORTS_APART, STARTING_APART, Reconciler
from paddlejob.plan import Action, PodPhase, World, times
from tests.support.builders import NOON, all_pods, job
from tests.support.model import Model

OTHERS = 100
WAITS = OTHERS * STARTING_APART
BEGUN = {"attempt": 1, "startTime": times.format(NOON - 5)}
PUBLISHED = {**BEGUN, "publishedAttempt": 1}


class Crowd(Model):
    """The job, beside others of which only the views matter."""

    def __init__(self, made: PaddleJob) -> None:
        super().__init__(made)
        self.others: dict[Key, View] = {}
        self.loop = Reconciler(self, clock=lambda: self.now)

    async def observe(self, key: Key) -> View | None:
        return await super().observe(key) if key == self.key else self.others.get(key)

    async def report(self, job: PaddleJob, status: Status) -> None:
        if (job.namespace, job.name) == self.key:
            await super().report(job, status)

    async def perform(self, job: PaddleJob, action: Action) -> None:
        if (job.namespace, job.name) == self.key:
            await super().perform(job, action)

    async def look_at(self, count: int, status: dict[str, Any], pods: dict[str, Any] | None = None) -> None:
        """One turn for each of so many other jobs."""
        for number in range(count):
            other = job(f"job-{number}", status=status)
            seen = () if pods is None else all_pods(other, **pods)
            self.others["default", other.name] = View(other, World(seen, environments={1: "uid"} if pods else {}))
            await self.loop.step(("default", other.name))


async def a_job_that_starts(**roles: Any) -> Crowd:
    """Its status says that no pod runs yet, and one does."""
    model = Crowd(job(**{"workers": 3} | roles))
    await model.loop.step(model.key)
    model.now += REPORTS_APART
    await model.loop.step(model.key)
    first = next(iter(model.pods))
    assert model.status.conditions, "the first status is written"
    model.change(first, phase=PodPhase.RUNNING)
    model.environments[1] = {}
    return model


@pytest.mark.parametrize(
    ("status", "pods", "apart"),
    [
        ({}, None, WAITS),
        (BEGUN | {"phase": "Pending"}, {"phase": PodPhase.PENDING}, WAITS),
        (PUBLISHED | {"phase": "Starting"}, {"phase": PodPhase.WAITING}, WAITS),
        (BEGUN | {"phase": "Pending"}, {"phase": PodPhase.PENDING, "reason": "ErrImagePull"}, REPORTS_APART),
        (BEGUN | {"phase": "Restarting"}, {"phase": PodPhase.PENDING}, REPORTS_APART),
        (PUBLISHED | {"phase": "Running"}, {"phase": PodPhase.RUNNING}, REPORTS_APART),
    ],
    ids=["new", "not ready", "starting", "hindered", "restarting", "running"],
)
async def test_mere_progress_waits_for_the_jobs_that_are_about_to_run(
    status: dict[str, Any], pods: dict[str, Any] | None, apart: float
):
    model = await a_job_that_starts()
    await model.look_at(OTHERS, status, pods)
    assert await model.loop.step(model.key) == pytest.approx(model.now + apart, abs=2 * STARTING_APART)


async def test_however_many_jobs_start_a_report_waits_for_two_minutes_at_most():
    model = await a_job_that_starts()
    await model.look_at(2000, {})
    assert await model.loop.step(model.key) == model.now + 120


async def test_jobs_that_run_by_now_or_are_gone_make_no_report_wait():
    model = await a_job_that_starts()
    await model.look_at(OTHERS, {})
    await model.look_at(OTHERS // 2, PUBLISHED | {"phase": "Running"}, {"phase": PodPhase.RUNNING})
    for number in range(OTHERS // 2, OTHERS):
        del model.others["default", f"job-{number}"]
        assert await model.loop.step(("default", f"job-{number}")) is None
    assert await model.loop.step(model.key) == model.now + REPORTS_APART


@pytest.mark.parametrize("role", ["ps", "heter"])
async def test_a_count_of_any_role_can_wait(role: str):
    model = await a_job_that_starts(ps=1, heter=1)
    name = f"mnist-{role}-0"
    for pod in model.pods:
        model.change(pod, phase=PodPhase.RUNNING if pod == name else PodPhase.WAITING)
    before = model.status
    assert await model.loop.step(model.key) == model.now + REPORTS_APART
    assert model.status == before
