"""Laws of progress and goodput, for any log, any faults and any crashes, on models of both backends."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paddlejob.api.types import Status
from paddlejob.engine.log_follower import LogFollower
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser
from tests.property.test_laws import COUNTERS, PODS, inject
from tests.support.builders import job
from tests.support.examples import examples
from tests.support.local_model import LocalModel
from tests.support.model import Crash, Model

LINE = st.one_of(
    st.builds("step: {}/{} loss: {}".format, st.integers(0, 500), st.integers(1, 500), st.floats(0, 10)),
    st.builds("epoch: {} step: {}".format, st.integers(0, 9), st.integers(0, 500)),
    st.text(max_size=30),
)
EVENT = st.one_of(
    st.tuples(st.sampled_from(["print", "print in the past"]), LINE),
    st.tuples(st.just("pass"), st.integers(1, 120)),
    st.tuples(st.sampled_from(["fail", "delete", "evict"]), st.sampled_from(PODS)),
    st.tuples(st.sampled_from(["crash", "suspend", "resume", "hang", "lose", "repeat"]), st.none()),
)
EVENTS = st.lists(EVENT, max_size=25)
both_backends = pytest.mark.parametrize("backend", [Model, LocalModel])


class Life:
    """A job whose worker 0 prints; a reader follows it and, like the engine, may lose what it knew."""

    def __init__(self, backend: type[Model]) -> None:
        self.model = backend(job(ps=1, backoffLimit=2, stallSeconds=60))
        self.seen: list[Status] = [self.model.status]
        self._report = self.model.report
        self.model.report = self._noting  # type: ignore[method-assign]
        self._follower: LogFollower | None = None
        self._earlier: list[LogReading] = []

    async def _noting(self, job_, status: Status) -> None:
        await self._report(job_, status)
        self.seen.append(status)

    def _read(self, line: str, behind: float = 0.0) -> None:
        """The clock of the node may be behind, also only now."""
        status = self.model.status
        if self._follower is None or self._follower.attempt != status.attempt:
            highest = status.progress.highestStep if status.progress else None
            self._follower = LogFollower(status.attempt, Parser(), highest)
        self._follower.feed([(self.model.now - behind, line)])
        self._follower.hear(self.model.now)
        self.model.logs = self._follower.reading
        self._earlier.append(self.model.logs)

    async def live(self, events: list[tuple[str, object]]) -> list[Status]:
        await self.model.settle()
        for kind, detail in events:
            self._happen(kind, detail)
            try:
                await self.model.settle(200)
            except Crash:
                self.model.crash()
        return self.seen

    def _happen(self, kind: str, detail: object) -> None:
        match kind:
            case "print":
                self._read(str(detail))
            case "print in the past":
                self._read(str(detail), behind=3600.0)
            case "lose":
                self.model.logs = None
            case "repeat" if self._earlier:
                self.model.logs = self._earlier[0]
            case "pass":
                self.model.now += float(str(detail))
            case "hang" if self._follower is not None:
                self._follower.hear_nothing(self.model.now + 100)
                self.model.logs = self._follower.reading
            case "crash":
                self._follower = self.model.logs = None
                self.model.crash()
            case "suspend" | "resume":
                self.model.edit(ps=1, backoffLimit=2, stallSeconds=60, suspend=kind == "suspend")
            case "fail" | "delete" | "evict":
                inject(self.model, kind, str(detail))


@both_backends
@examples(80)
@given(events=EVENTS)
def test_the_highest_step_never_falls_and_goodput_is_a_percentage(backend, events):
    seen = asyncio.run(Life(backend).live(events))
    for before, after in pairwise(seen):
        assert after.goodput is None or 0 <= after.goodput <= 100
        for counter in COUNTERS:
            assert getattr(after, counter) >= getattr(before, counter)
        if before.progress is None:
            continue
        assert after.progress is not None, "what is known is not forgotten"
        assert (after.progress.highestStep or -1) >= (before.progress.highestStep or -1)
        assert after.progress.productiveSeconds >= before.progress.productiveSeconds
        if after.attempt == before.attempt:
            assert after.progress.stepAtStart == before.progress.stepAtStart
        else:
            assert after.progress.stepAtStart == after.progress.highestStep


@both_backends
@examples(40)
@given(events=EVENTS)
@example(events=[("fail", PODS[0]), ("print", "step: 1"), ("hang", None), ("fail", PODS[0])])
def test_a_hang_is_counted_once_and_does_not_outlive_its_attempt(backend, events):
    life = Life(backend)
    seen = asyncio.run(life.live(events))
    hangs = sum(kind == "hang" for kind, _ in events)
    stalls = sum(one.reason == "Stalled" for one in life.model.events)
    assert stalls <= hangs
    assert seen[-1].restarts <= hangs + sum(kind == "fail" for kind, _ in events)
    for status in seen:
        assert status.failuresWithoutProgress <= 2, "backoffLimit"
        if status.progress is None or status.progress.highestStep is None:
            assert status.restarts <= 2, "without steps every failure counts"
