"""After a rejected action or an outdated view the loop plans again soon, and a job does not wait for an event."""

from __future__ import annotations

from paddlejob.engine.backend import Outdated, Rejected
from paddlejob.plan import PodPhase
from tests.support.builders import job
from tests.support.model import Model


async def test_a_rejection_is_planned_with_at_once_so_that_the_status_tells():
    model = Model(job(workers=2))
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "exceeded quota: pods")
    assert await model.step() == model.now
    assert (await model.step() or 0) > model.now, "then it waits until the action is due again"
    assert model.status.reason == "QuotaExceeded"


async def test_what_was_outdated_is_looked_at_again_at_once_then_more_and_more_seldom():
    model = Model(job(workers=1))
    await model.settle()
    model.change("mnist-worker-0", phase=PodPhase.SUCCEEDED, exit_code=0)

    async def outdated(*_: object) -> None:
        raise Outdated

    model.report = outdated
    waits = [round((await model.step() or 0) - model.now, 3) for _ in range(6)]
    assert waits == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6]


def test_a_rejection_says_why_also_in_a_traceback():
    error = Rejected("Forbidden", "exceeded quota: pods")
    assert (error.reason, error.message, str(error)) == ("Forbidden", "exceeded quota: pods", "exceeded quota: pods")
