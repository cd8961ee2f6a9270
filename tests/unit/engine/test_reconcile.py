"""How often the loop reports: what matters at once, mere progress seldom."""

from __future__ import annotations

from paddlejob.api.types import Phase, Status
from paddlejob.engine.backend import Refused
from paddlejob.engine.reconcile import REPORTS_APART
from paddlejob.plan import PodPhase
from tests.support.builders import job
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


async def test_a_new_job_in_trouble_says_so_at_once():
    model = Model(job())
    written = noting(model)
    model.refuse["mnist-worker-0"] = Refused("Forbidden", "exceeded quota: pods")
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
