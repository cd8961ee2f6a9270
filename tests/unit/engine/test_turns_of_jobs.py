"""Jobs share the requests in flight, one each in turn, and a rejection is not held against a job for long."""

from __future__ import annotations

import asyncio

import pytest

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine import reconcile
from paddlejob.engine.backend import Key, Rejected, View
from paddlejob.engine.carry_out import carry_out
from paddlejob.engine.reconcile import Reconciler
from paddlejob.plan import Action, Create, Kind, World
from tests.support.builders import NOON, job
from tests.support.model import Model


class TwoJobs:
    """A backend on which every request takes a moment."""

    def __init__(self) -> None:
        self.jobs = {("default", name): job(name, workers=count) for name, count in (("large", 60), ("small", 1))}
        self.created: list[str] = []
        self.in_flight = self.most_in_flight = 0

    async def observe(self, key: Key) -> View | None:
        return View(self.jobs[key], World())

    async def report(self, job: PaddleJob, status: Status) -> None:
        pass

    def is_current(self, job: PaddleJob) -> bool:
        return True

    async def perform(self, job: PaddleJob, action: Action) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        if isinstance(action, Create):
            self.created.append(job.name)


async def test_the_only_pod_of_a_job_is_created_next_although_another_job_of_its_namespace_creates_many(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(reconcile, "REQUESTS_IN_FLIGHT", 2)
    backend = TwoJobs()
    reconciler = Reconciler(backend, clock=lambda: NOON)
    large = asyncio.create_task(reconciler.step(("default", "large")))
    while len(backend.created) < 12:  # noqa: ASYNC110
        await asyncio.sleep(0)
    begun = len(backend.created)
    await reconciler.step(("default", "small"))
    waited = backend.created.index("small") - begun
    await large
    assert backend.most_in_flight == 2
    assert waited <= 4, "one turn of the other job, and what was in flight"
    assert backend.created.count("large") == 60


async def test_a_rejection_counts_from_one_again_after_the_action_succeeded():
    model = Model(job(workers=1))
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "denied by a policy")
    for _ in range(5):
        model.now += 100
        await model.step()
    model.rejects.clear()
    model.now += 100
    await model.settle()
    assert model.status.phase is Phase.RUNNING
    model.pods.clear()
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "denied by a policy")
    waits = []
    for _ in range(12):
        wake_at = await model.step()
        assert wake_at is not None
        if model.status.reason == "AdmissionRejected":
            waits.append(wake_at - model.now)
        model.now = max(model.now, wake_at)
    assert min(wait for wait in waits if wait > 0) <= 2


async def test_a_rejection_counts_although_requests_that_were_in_flight_with_it_succeed_later():
    performed: list[int] = []
    rejected = asyncio.Event()

    async def perform(action: Action) -> None:
        number = int(action.name) if isinstance(action, Create) else -1
        performed.append(number)
        if number == 5:
            rejected.set()
            raise Rejected("Forbidden", "exceeded quota: pods")
        if number > 2:
            await rejected.wait()
            await asyncio.sleep(0.001 * number)

    actions = [Create(Kind.POD, str(number), {}) for number in range(40)]
    with pytest.raises(Rejected, match="exceeded quota"):
        await carry_out(actions, perform)
    assert max(performed) < 10, "no other is tried"


async def test_a_rejection_is_planned_with_at_once_so_that_the_status_tells():
    model = Model(job(workers=2))
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "exceeded quota: pods")
    assert await model.step() == model.now
    assert (await model.step() or 0) > model.now, "then it waits until the action is due again"
    assert model.status.reason == "QuotaExceeded"


def test_a_rejection_says_why_also_in_a_traceback():
    error = Rejected("Forbidden", "exceeded quota: pods")
    assert (error.reason, error.message, str(error)) == ("Forbidden", "exceeded quota: pods", "exceeded quota: pods")
