"""Laws of live parameter-server workers: whatever happens to one of them, only it is replaced."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase, Status
from paddlejob.plan import Delete, Kind, PodPhase
from paddlejob.plan.world import LogReading
from tests.support.builders import job
from tests.support.examples import examples
from tests.support.local_model import LocalModel
from tests.support.model import Model

SHAPE = {"ps": 2, "elastic": 1, "withGloo": 0, "backoffLimit": 4}
WORKERS = st.integers(0, 3)
FAULT = st.one_of(
    st.tuples(st.sampled_from(["fail", "evict", "delete", "vanish", "reject"]), WORKERS),
    st.tuples(st.just("scale"), st.integers(1, 4)),
)
FAULTS = st.lists(st.lists(FAULT, min_size=1, max_size=3), max_size=5)
"""Rounds of faults; those of one round happen at once."""
CRASHES = st.lists(st.integers(0, 10), max_size=5)
COUNTERS = ("attempt", "publishedAttempt", "restarts", "disruptions", "startupTimeouts")
INTRANET = st.sampled_from(["PodIP", "Service", "Host"])


class Life:
    """A job whose first worker has trained, the faults it met, and every status it had."""

    def __init__(self, backend: type[Model], intranet: str) -> None:
        self.shape = SHAPE | {"intranet": intranet}
        self.workers = 3
        self.model = backend(job(**self.shape, workers=self.workers))
        self.model.logs = LogReading(attempt=1, step=10, metrics={"loss": 0.5})
        self.seen: list[Status] = []
        self.hit: set[str] = set()
        """The workers that a fault or scaling concerned."""
        self.lost = self.failed = 0
        report = self.model.report

        async def noting(job_, status: Status) -> None:
            await report(job_, status)
            self.seen.append(status)

        self.model.report = noting

    def inject(self, fault: str, number: int) -> None:
        model, name = self.model, f"mnist-worker-{number}"
        if fault == "scale":
            changed = range(min(self.workers, number), max(self.workers, number))
            self.hit |= {f"mnist-worker-{index}" for index in changed}
            self.workers = number
            model.edit(**self.shape, workers=number)
            return
        pod = model.pods.get(name)
        if number >= self.workers or pod is None or pod.phase is not PodPhase.RUNNING or pod.deleting or pod.disrupted:
            return
        self.hit.add(name)
        self.failed += fault == "fail"
        self.lost += fault != "fail"
        match fault:
            case "fail":
                model.end(name, 1)
            case "evict":
                model.change(name, disrupted=True, reason="Evicted")
            case "reject":
                model.change(name, phase=PodPhase.FAILED, disrupted=True, reason="OutOfcpu")
            case "delete":
                model.change(name, deletion_due=model.now + 30)
            case "vanish":
                del model.pods[name]

    async def run(self, rounds: list[list[tuple[str, int]]], crashes: list[int]) -> Life:
        await self.model.settle()
        for number, faults in enumerate(rounds):
            if self.model.status.finished:
                break
            # One scaling a round: a worker that is removed and added again at once is the matter of a unit test.
            scaled = False
            for fault, target in faults:
                if fault == "scale" and scaled:
                    continue
                scaled |= fault == "scale"
                self.inject(fault, target)
            self.model.crash_after = crashes[number] if number < len(crashes) else None
            await self.model.settle(120)
        self.model.crash_after = None
        return self


def live(backend: type[Model], intranet: str, rounds: list[list[tuple[str, int]]], crashes: list[int]) -> Life:
    return asyncio.run(Life(backend, intranet).run(rounds, crashes))


@examples(150)
@given(intranet=INTRANET, rounds=FAULTS, crashes=CRASHES)
def test_only_the_workers_that_were_hit_are_deleted_and_the_attempt_stays_the_first(intranet, rounds, crashes):
    life = live(Model, intranet, rounds, crashes)
    status = life.model.status
    if status.phase is Phase.FAILED:
        assert (status.reason, life.failed > 4) == ("BackoffLimitExceeded", True)
        return
    deleted = {one.name for one in life.model.done if isinstance(one, Delete) and one.kind is Kind.POD}
    assert deleted <= life.hit
    assert {one.attempt for one in life.seen} == {1}
    assert status.phase is Phase.RUNNING
    wanted = {f"mnist-worker-{index}" for index in range(life.workers)}
    assert {name for name in life.model.pods if "worker" in name} == wanted
    assert all(pod.phase is PodPhase.RUNNING for pod in life.model.pods.values())


@examples(150)
@given(intranet=INTRANET, rounds=FAULTS, crashes=CRASHES)
def test_each_loss_is_counted_once_whenever_the_operator_crashes(intranet, rounds, crashes):
    calm, crashed = live(Model, intranet, rounds, []), live(Model, intranet, rounds, crashes)
    one, other = calm.model.status, crashed.model.status
    assert (one.phase, one.restarts, one.disruptions) == (other.phase, other.restarts, other.disruptions)
    assert one.replacements == other.replacements
    if one.phase is Phase.RUNNING:
        assert one.restarts <= calm.failed
        assert one.disruptions <= calm.lost


@pytest.mark.parametrize("backend", [Model, LocalModel])
@examples(60)
@given(intranet=INTRANET, rounds=FAULTS, crashes=CRASHES)
def test_counters_never_fall_and_the_job_ends_up_running_or_failed(backend, intranet, rounds, crashes):
    life = live(backend, intranet, rounds, crashes)
    for before, after in pairwise(life.seen):
        for counter in COUNTERS:
            assert getattr(after, counter) >= getattr(before, counter)
        assert after.attempt <= before.attempt + 1
    assert life.model.status.phase in (Phase.RUNNING, Phase.FAILED)
