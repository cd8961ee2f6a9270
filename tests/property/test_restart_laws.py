"""Laws of restarts, for any sequence of faults, steps and crashes of the engine, on models of both backends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase, Progress, Status
from paddlejob.plan import PodPhase, times
from paddlejob.plan.past_attempts import KEPT
from paddlejob.plan.restarts.backoff import LONGEST_DELAY, SHORTEST_ATTEMPT
from tests.support.builders import job
from tests.support.examples import examples
from tests.support.local_model import LocalModel
from tests.support.model import Model

both_backends = pytest.mark.parametrize("backend", [Model, LocalModel])
COUNTERS = ("attempt", "publishedAttempt", "restarts", "disruptions")


@dataclass(frozen=True)
class Attempt:
    """What happens in one attempt: where it resumes, how many steps it trains, for how long, and how it ends."""

    goes_back: int
    trains: int
    seconds: float
    ends: str
    crash_after: int | None


def attempts(*, crashes: bool = False, most_steps: int = 40) -> st.SearchStrategy[list[Attempt]]:
    one = st.builds(
        Attempt,
        goes_back=st.integers(0, 20),
        trains=st.integers(0, most_steps),
        seconds=st.sampled_from([0.0, 5.0, 59.0, 61.0, 3600.0]),
        ends=st.sampled_from(["fail", "evict", "delete", "lose node"]),
        crash_after=st.one_of(st.none(), st.integers(0, 8)) if crashes else st.none(),
    )
    return st.lists(one, min_size=1, max_size=12)


class Trainer:
    """A job on a model, whose log shows steps if `prints`."""

    def __init__(self, backend: type[Model], limit: int, *, prints: bool) -> None:
        self.model = backend(job(workers=2, backoffLimit=limit))
        self.prints = prints
        self.seen: list[Status] = []
        self.delays: list[tuple[bool, float]] = []
        """For each restart, whether the attempt before it came further, and the delay."""
        self._report = self.model.report
        self.model.report = self._noting

    async def _noting(self, made: object, status: Status) -> None:
        await self._report(made, status)
        self.seen.append(status)

    @property
    def highest(self) -> int:
        progress = self.model.status.progress
        return (progress.highestStep or 0) if progress else 0

    def train(self, attempt: Attempt) -> bool:
        """Steps appear in the log. Returns whether the highest rose."""
        self.model.now += attempt.seconds
        if not self.prints or not attempt.trains:
            return False
        before, progress = self.highest, self.model.status.progress or Progress()
        known = progress.highestStep is not None
        step = max(0, before - attempt.goes_back) + attempt.trains
        progress = progress.model_copy(update={"step": step, "highestStep": max(before, step)})
        status = self.model.status.model_copy(update={"progress": progress})
        self.model.job = self.model.job.model_copy(update={"status": status})
        return not known or step > before

    async def live(self, lives: list[Attempt]) -> None:
        await self.model.settle()
        for attempt in lives:
            if self.model.status.phase is not Phase.RUNNING:
                return
            gained, before, number = self.train(attempt), self.model.now, self.model.status.attempt
            end(self.model, attempt.ends)
            self.model.crash_after = attempt.crash_after
            await self.model.settle()
            self.model.crash_after = None
            begun = next((one for one in self.seen if one.attempt > number), None)
            if begun is not None and attempt.crash_after is None:
                due = begun.nextRestartTime
                self.delays.append((gained, times.parse(due) - before if due else 0.0))


def end(model: Model, how: str) -> None:
    match how:
        case "fail":
            model.end("mnist-worker-1", 1)
        case "evict":
            model.change("mnist-worker-1", phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
        case "delete":
            model.pods.pop("mnist-worker-1", None)
        case "lose node":
            model.change("mnist-worker-1", disrupted=True, reason="NodeLost", deletion_due=model.now + 30)


def lived(backend: type[Model], lives: list[Attempt], limit: int = 3, *, prints: bool = True) -> Trainer:
    trainer = Trainer(backend, limit, prints=prints)
    asyncio.run(trainer.live(lives))
    return trainer


@both_backends
@examples(80)
@given(lives=attempts(crashes=True), limit=st.integers(0, 3), prints=st.booleans())
def test_no_counter_and_no_highest_step_ever_falls(backend, lives, limit, prints):
    for before, after in pairwise(lived(backend, lives, limit, prints=prints).seen):
        for counter in COUNTERS:
            assert getattr(after, counter) >= getattr(before, counter)
        old, new = before.progress or Progress(), after.progress or Progress()
        assert (new.highestStep or 0) >= (old.highestStep or 0)
        assert (new.stepAtStart or 0) <= (new.highestStep or 0)


@both_backends
@examples(80)
@given(lives=attempts(), prints=st.booleans())
def test_only_an_attempt_that_made_progress_and_lasted_is_followed_by_the_next_at_once(backend, lives, prints):
    trainer = lived(backend, lives, limit=99, prints=prints)
    for (gained, delay), attempt in zip(trainer.delays, lives, strict=False):
        assert delay <= LONGEST_DELAY + 1
        if gained and attempt.seconds >= SHORTEST_ATTEMPT:
            assert delay == 0
        elif gained or attempt.seconds < 59:
            assert delay > 0
    without = [delay for gained, delay in trainer.delays if not gained] if prints else []
    if prints and without and all(not gained for gained, _ in trainer.delays[1:]):
        assert without == sorted(without), "each restart without progress waits no less than the one before"


@both_backends
@examples(20)
@given(steps=st.lists(st.integers(1, 1000), min_size=9, max_size=12), ends=st.sampled_from(["fail", "delete"]))
def test_attempts_that_end_at_once_never_follow_each_other_fast_whatever_they_print(backend, steps, ends):
    """The step rises in every attempt, as with a program that keeps its own count in a file."""
    trainer = lived(backend, [Attempt(0, trained, 0.0, ends, None) for trained in steps])
    delays = [round(delay) for _, delay in trainer.delays]
    assert len(delays) == len(steps)
    assert delays == sorted(delays)
    assert delays[-1] >= LONGEST_DELAY


@both_backends
@examples(80)
@given(lives=attempts(crashes=True, most_steps=3), limit=st.integers(0, 3), prints=st.booleans())
def test_while_a_job_lives_its_failures_without_progress_stay_within_the_limit(backend, lives, limit, prints):
    status = lived(backend, lives, limit, prints=prints).model.status
    assert status.failuresWithoutProgress <= limit
    if not prints:
        assert status.restarts == status.failuresWithoutProgress <= limit


@both_backends
@examples(60)
@given(
    first=st.integers(0, 50),
    back=st.integers(0, 50),
    limit=st.integers(0, 4),
    seconds=st.sampled_from([1.0, 600.0, 36000.0]),
    disruptions=st.lists(st.sampled_from(["evict", "delete", "lose node"]), max_size=3),
)
def test_a_job_that_never_gets_further_ends_after_as_many_failures_as_allowed(
    backend, first, back, limit, seconds, disruptions
):
    """However long each attempt trains, and whatever else happens in between."""
    begun = Attempt(0, first, seconds, "fail", None)
    again = [Attempt(min(back, first), min(back, first), seconds, "fail", None) for _ in range(limit + 1)]
    between = [Attempt(0, 0, seconds, how, None) for how in disruptions]
    status = lived(backend, [begun, *between, *again], limit).model.status
    assert (status.phase, status.reason) == (Phase.FAILED, "BackoffLimitExceeded")
    assert status.restarts == limit


@both_backends
@examples(80)
@given(lives=attempts(crashes=True), prints=st.booleans())
def test_every_attempt_that_ended_is_recorded_once_and_in_order(backend, lives, prints):
    for status in lived(backend, lives, limit=99, prints=prints).seen:
        past = status.pastAttempts
        assert [one.attempt for one in past] == list(range(max(1, status.attempt - KEPT), status.attempt))
        bounds = [bound for one in past for bound in (one.startTime, one.endTime)]
        assert bounds == sorted(bounds), "attempts follow each other"
        assert all(one.reason and one.failed for one in past)


@examples(60)
@given(lives=attempts(crashes=True), limit=st.integers(0, 3))
def test_a_crash_of_the_engine_changes_neither_the_counts_nor_the_end(lives, limit):
    undisturbed = [Attempt(one.goes_back, one.trains, one.seconds, one.ends, None) for one in lives]
    crashed, calm = (lived(Model, each, limit).model.status for each in (lives, undisturbed))
    for field in (*COUNTERS, "phase", "failuresWithoutProgress", "restartsWithoutProgress", "suspectNodes"):
        assert getattr(crashed, field) == getattr(calm, field), field


ERRORS = ("ValueError: no such column", "KeyError: 'lr'", "RuntimeError: Connection reset by peer", "epoch 1", "")
OWN_ERRORS = ERRORS[:2]
ENDS = st.tuples(st.sampled_from([*ERRORS, "evict"]), st.sampled_from([0.0, 61.0]), st.none() | st.integers(0, 8))


def expected_restarts(ends: list[tuple[str, float, int | None]]) -> int | None:
    """After how many the job fails because of an error that it ended with twice; None if it does not."""
    previous, restarts = "", 0
    for line, seconds, _ in ends:
        early = line if line in OWN_ERRORS and not seconds else ""
        if early and early == previous:
            return restarts
        previous, restarts = early, restarts + (line != "evict")
    return None


async def fails_with(backend: type[Model], ends: list[tuple[str, float, int | None]], crashes: bool) -> Status:
    model = backend(job(workers=2, backoffLimit=99))
    await model.settle()
    for line, seconds, crash in ends:
        if model.status.phase is not Phase.RUNNING:
            break
        model.now += seconds
        if line == "evict":
            end(model, line)
        else:
            model.end("mnist-worker-1", 1, message=line)
        model.crash_after = crash if crashes else None
        await model.settle()
        model.crash_after = None
    return model.status


@pytest.mark.parametrize(("backend", "crashes"), [(Model, False), (LocalModel, False), (Model, True)])
@examples(80)
@given(ends=st.lists(ENDS, max_size=8))
def test_an_error_ends_a_job_exactly_if_two_attempts_in_a_row_end_with_it_before_any_progress(backend, crashes, ends):
    status, expected = asyncio.run(fails_with(backend, ends, crashes)), expected_restarts(ends)
    if expected is None:
        assert status.phase is Phase.RUNNING
    else:
        assert (status.phase, status.reason, status.restarts) == (Phase.FAILED, "ProgramFailed", expected)
