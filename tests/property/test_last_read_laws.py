"""Laws of the last read: when a log is read makes no difference to how a job ends, on models of both backends."""

from __future__ import annotations

import asyncio
import math

from hypothesis import example, given
from hypothesis import strategies as st

from paddlejob.api.types import Progress, Status
from paddlejob.engine.log_follower import LogFollower
from paddlejob.plan import Delete, Kind
from paddlejob.plan.world import LogReading
from paddlejob.progress import Parser
from tests.property.test_laws import PODS, both_backends, inject
from tests.support.builders import job
from tests.support.examples import examples
from tests.support.model import Crash, Model

EVENT = st.one_of(
    st.tuples(st.just("print"), st.integers(0, 60)),
    st.tuples(st.just("pass"), st.integers(1, 120)),
    st.tuples(st.sampled_from(["fail", "succeed", "evict"]), st.sampled_from(PODS)),
    st.tuples(st.sampled_from(["suspend", "resume", "crash"]), st.none()),
)
EVENTS = st.lists(EVENT, max_size=20)
AT_ONCE, LATE, NEVER = "at once", "late", "never"
SPEC = {"ps": 1, "workers": 2, "backoffLimit": 1}


class Life:
    """A job whose worker 0 prints. Its log is read at once, only when the planner asks for it, or never."""

    def __init__(self, backend: type[Model], when: str) -> None:
        self.model = backend(job(**SPEC))
        self._when = when
        self._lines: dict[int, list[int]] = {}
        """The steps that each attempt has printed."""
        self.model.read_log = None if when == NEVER else self._read

    def _read(self) -> LogReading:
        status = self.model.status
        begun = (status.progress or Progress()).stepAtStart
        follower = LogFollower(status.attempt, Parser(), begun)
        follower.feed((self.model.now, f"step: {step}/60") for step in self._lines.get(status.attempt, []))
        return follower.reading

    async def live(self, events: list[tuple[str, object]]) -> Status:
        await self.model.settle()
        for kind, detail in events:
            self._happen(kind, detail)
            try:
                await self.model.settle(300)
            except Crash:
                self.model.crash()
        return self.model.status

    def _happen(self, kind: str, detail: object) -> None:
        model = self.model
        match kind:
            case "print" if PODS[1] in model.pods and not model.pods[PODS[1]].ended:
                self._lines.setdefault(model.status.attempt, []).append(int(str(detail)))
                if self._when == AT_ONCE:
                    model.logs = self._read()
                else:
                    model.unread_until = math.inf
            case "pass":
                model.now += float(str(detail))
            case "crash":
                model.crash()
            case "suspend" | "resume":
                model.edit(**SPEC, suspend=kind == "suspend")
            case "fail" | "succeed" | "evict":
                inject(model, kind, str(detail))


def outcome(status: Status) -> tuple[object, ...]:
    progress = status.progress or Progress()
    ended = (status.phase, status.reason, status.attempt, status.restarts, status.disruptions)
    return (*ended, status.failuresWithoutProgress, progress.highestStep)


@both_backends
@examples(120)
@given(events=EVENTS)
@example(events=[("print", 3), ("fail", PODS[1]), ("print", 5), ("fail", PODS[1]), ("print", 7), ("fail", PODS[1])])
def test_a_job_ends_the_same_whether_its_log_is_read_at_once_or_only_in_the_end(backend, events):
    """Until an attempt ends, what is known of it may be behind, so the job is suspended in the end."""
    end = [("suspend", None)]
    at_once, late = (asyncio.run(Life(backend, when).live(events + end)) for when in (AT_ONCE, LATE))
    assert outcome(at_once) == outcome(late)


@both_backends
@examples(60)
@given(events=EVENTS)
def test_a_log_that_cannot_be_read_delays_an_end_but_prevents_none(backend, events):
    without, never = Life(backend, NEVER), Life(backend, NEVER)
    plain = asyncio.run(without.live([event for event in events if event[0] != "print"]))
    assert outcome(asyncio.run(never.live(events))) == outcome(plain), "it is judged as if it had printed nothing"


@both_backends
@examples(60)
@given(events=EVENTS)
def test_the_pod_of_worker_0_is_not_deleted_before_its_log_was_read(backend, events):
    life = Life(backend, LATE)
    perform = life.model.perform

    async def checking(job_, action) -> None:
        deletes = isinstance(action, Delete) and action.kind is Kind.POD and action.name == PODS[1]
        assert not (deletes and life.model.world().log_unread)
        await perform(job_, action)

    life.model.perform = checking  # type: ignore[method-assign]
    asyncio.run(life.live(events))
