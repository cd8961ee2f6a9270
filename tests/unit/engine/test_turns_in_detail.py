"""The order of turns, how often a job is looked at while it is built, and which jobs make reports wait."""

from __future__ import annotations

import random

import pytest

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.engine import queue as queue_module
from paddlejob.engine.queue import FEW, KeyedQueue
from paddlejob.engine.reconcile import LOOK_EVERY, REPORTS_APART, STARTING_APART, Reconciler
from paddlejob.plan import PodPhase
from tests.support.builders import job
from tests.support.model import Model


async def test_turns_keep_their_order_when_overtaken_requests_are_dropped(monkeypatch: pytest.MonkeyPatch):
    now = [1000.0]
    monkeypatch.setattr(queue_module.time, "monotonic", lambda: now[0])
    drawn = random.Random(7)
    for _ in range(20):
        queue = KeyedQueue[str](min_interval=0.0)
        for sooner in range(10 * FEW):
            queue.add_after(f"job-{drawn.randrange(FEW)}", 1000 - sooner + drawn.uniform(0, 300))
        now[0] += 2000
        turns = [await queue._next() for _ in range(queue.depth)]
        due = [turn[1] for turn in turns if turn]
        assert due == sorted(due)


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
    assert len(asked) == 5
    assert asked[0] == 0, "a job that is gone gets no pod at all"


STARTING = 100 * STARTING_APART


@pytest.mark.parametrize(
    ("phase", "reason", "apart"),
    [
        (Phase.PENDING, "Created", STARTING),
        (Phase.PENDING, "PodsNotReady", STARTING),
        (Phase.STARTING, "Starting", STARTING),
        (Phase.PENDING, "Unschedulable", REPORTS_APART),
        (Phase.STARTING, "ImagePullBackOff", REPORTS_APART),
        (Phase.RESTARTING, "PodsNotReady", REPORTS_APART),
        (Phase.RUNNING, "Running", REPORTS_APART),
    ],
)
async def test_mere_progress_waits_for_the_jobs_that_are_about_to_run(phase: Phase, reason: str, apart: float):
    model, loop = await a_job_that_starts()
    for number in range(100):
        loop._note_starting(("default", f"job-{number}"), Status(phase=phase, reason=reason))
    wake_at = await loop.step(model.key)
    assert wake_at == pytest.approx(model.now + apart, abs=2 * STARTING_APART)


async def test_however_many_jobs_start_a_report_waits_for_two_minutes_at_most():
    model, loop = await a_job_that_starts()
    for number in range(2000):
        loop._note_starting(("default", f"job-{number}"), Status(phase=Phase.PENDING, reason="Created"))
    assert await loop.step(model.key) == model.now + 120


async def test_jobs_that_run_or_are_gone_make_no_report_wait():
    model, loop = await a_job_that_starts()
    for number in range(100):
        key = ("default", f"job-{number}")
        loop._note_starting(key, Status(phase=Phase.PENDING, reason="Created"))
        if number % 2:
            loop._note_starting(key, Status(phase=Phase.RUNNING, reason="Running"))
        else:
            present, model.job = model.job, None
            assert await loop.step(key) is None
            model.job = present
    assert await loop.step(model.key) == model.now + REPORTS_APART


async def a_job_that_starts() -> tuple[Model, Reconciler]:
    """Its status says that no pod runs yet, and one does."""
    model = Model(job(workers=3))
    loop = Reconciler(model, clock=lambda: model.now)
    await loop.step(model.key)
    model.now += REPORTS_APART
    await loop.step(model.key)
    assert model.status.worker is not None and model.status.worker.pending == 3
    model.change("mnist-worker-0", phase=PodPhase.RUNNING)
    model.environments[1] = {}
    return model, loop
