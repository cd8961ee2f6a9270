"""Laws of elastic size: whatever happens to pods, nodes, the wish and the engine, on models of both backends."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase, Role, Status
from paddlejob.plan import Create, Delete, Kind, PodPhase, World, indexes, plan
from tests.support.builders import NOON, having, job, pod
from tests.support.examples import examples
from tests.support.local_model import LocalModel
from tests.support.model import Crash, Model

REQUESTS, LIMITS = 2, 4
ELASTIC: dict[str, Any] = {"elastic": 1, "worker_": {"requests": REQUESTS, "limits": LIMITS}, "backoffLimit": 100}
SHAPES = st.fixed_dictionaries(
    {
        "ps": st.sampled_from([0, 1]),
        "workers": st.integers(REQUESTS, LIMITS),
        "intranet": st.sampled_from(["PodIP", "Service", "Host"]),
        "growthIntervalSeconds": st.sampled_from([5, 60, 600]),
    }
)
INDEX = st.integers(0, LIMITS - 1)
HAPPENING = st.one_of(
    st.tuples(st.just("capacity"), st.integers(0, 6)),
    st.tuples(st.sampled_from(["fail", "lose node", "delete", "evict"]), INDEX),
    st.tuples(st.just("scale"), st.integers(REQUESTS, LIMITS)),
    st.tuples(st.just("pass"), st.integers(1, 700)),
)
HAPPENINGS = st.lists(HAPPENING, max_size=10)
CRASHES = st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=10)
COUNTERS = ("attempt", "publishedAttempt", "restarts", "disruptions", "startupTimeouts")
both_backends = pytest.mark.parametrize("backend", [Model, LocalModel])


def happen(model: Model, shape: dict, what: str, number: int) -> None:
    name = f"mnist-worker-{number}"
    match what:
        case "capacity":
            model.capacity = number
        case "fail":
            model.end(name, 1)
        case "lose node":
            model.lose_node(name)
        case "delete":
            model.pods.pop(name, None)
        case "evict":
            model.change(name, phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
        case "scale":
            shape["workers"] = number
            model.edit(**shape, **ELASTIC)


async def advance(model: Model, seconds: float, crash_after: int | None = None) -> None:
    """Let time pass; the engine survives only so many writes."""
    model.crash_after = crash_after
    ends = model.now + seconds
    for _ in range(60):
        try:
            wake_at = await model.step()
        except Crash:
            model.crash()
            wake_at = None
        model.tick()
        later = model.now + 1 if wake_at is None else max(model.now + 0.5, min(wake_at, model.now + 30))
        if later > ends:
            break
        model.now = later
    model.now = max(model.now, ends)
    model.crash_after = None


async def life(
    backend: type[Model], shape: dict, happenings: list[tuple[str, int]], crashes: list[int | None]
) -> tuple[Model, list[Status]]:
    shape = dict(shape)
    model = backend(job(**shape, **ELASTIC))
    model.capacity = LIMITS
    seen = [model.status]
    report = model.report

    async def noting(job_: Any, status: Status) -> None:
        await report(job_, status)
        seen.append(status)

    model.report = noting
    await advance(model, 60)
    for number, (what, value) in enumerate(happenings):
        happen(model, shape, what, value)
        seconds = value if what == "pass" else 45
        await advance(model, seconds, crashes[number] if number < len(crashes) else None)
    return model, seen


def published(model: Model) -> list[dict[str, str]]:
    """The environments of all attempts."""
    return [one.manifest["data"] for one in model.done if isinstance(one, Create) and one.kind is Kind.ENVIRONMENT]


@both_backends
@examples(40)
@given(shape=SHAPES, happenings=HAPPENINGS, crashes=CRASHES)
def test_the_size_of_every_attempt_is_within_requests_and_limits_and_its_ranks_are_contiguous(
    backend, shape, happenings, crashes
):
    model, seen = asyncio.run(life(backend, shape, happenings, crashes))
    for data in published(model):
        size = int(data["PADDLE_TRAINERS_NUM"])
        assert REQUESTS <= size <= LIMITS
        ranked = {name: value for name, value in data.items() if name.startswith("PADDLEJOB_RANK_")}
        assert sorted(ranked.values()) == [str(rank) for rank in range(size)]
        assert len(set(data["PADDLE_TRAINER_ENDPOINTS"].split(","))) == size
    for status in seen:
        if status.publishedAttempt == status.attempt > 0:
            assert REQUESTS <= len(indexes.parse(status.role(Role.WORKER).members)) <= LIMITS


@both_backends
@examples(30)
@given(shape=SHAPES, happenings=HAPPENINGS, crashes=CRASHES)
def test_counters_never_fall_every_attempt_is_recorded_and_growing_counts_as_neither(
    backend, shape, happenings, crashes
):
    _, seen = asyncio.run(life(backend, shape, happenings, crashes))
    for before, after in pairwise(seen):
        for counter in COUNTERS:
            assert getattr(after, counter) >= getattr(before, counter)
        assert after.attempt <= before.attempt + 1
        if after.reason in ("ScaledUp", "ScaledDown") and before.reason != after.reason:
            assert (after.restarts, after.disruptions) == (before.restarts, before.disruptions)
        trained = before.publishedAttempt == before.attempt
        if trained and after.attempt == before.attempt:
            assert after.role(Role.WORKER).members == before.role(Role.WORKER).members, "no change within an attempt"


@both_backends
@examples(30)
@given(shape=SHAPES, happenings=HAPPENINGS, crashes=CRASHES)
def test_once_there_is_room_the_job_has_the_size_that_it_asks_for_and_completes(backend, shape, happenings, crashes):
    async def to_the_end() -> Model:
        model, _ = await life(backend, shape, happenings, crashes)
        model.capacity = 2 * LIMITS
        for _ in range(12):
            await advance(model, 300)
        return model

    model = asyncio.run(to_the_end())
    assert model.job is not None
    wanted = model.job.spec.roles[Role.WORKER].replicas
    assert (model.status.phase, model.status.role(Role.WORKER).ready) == (Phase.RUNNING, f"{wanted}/{wanted}")
    assert {one.attempt for one in model.pods.values()} == {model.status.attempt}, "nothing of another attempt is left"
    for name in [name for name, one in model.pods.items() if one.role is Role.WORKER]:
        model.end(name, 0)
    asyncio.run(advance(model, 60))
    assert model.status.phase is Phase.COMPLETED


@examples(30)
@given(shape=SHAPES, capacity=st.integers(0, 6), crash_after=st.integers(0, 12))
def test_where_pods_outlive_the_engine_a_crash_neither_loses_nor_doubles_a_change_of_size(shape, capacity, crash_after):
    async def ended(crash: int | None) -> Status:
        model = Model(job(**{**shape, "workers": LIMITS, "growthIntervalSeconds": 600}, **ELASTIC))
        model.capacity = REQUESTS + shape["ps"]
        await advance(model, 60)
        model.capacity = max(capacity, model.capacity)
        await advance(model, 700, crash)
        await advance(model, 60)
        return model.status

    undisturbed, crashed = asyncio.run(ended(None)), asyncio.run(ended(crash_after))
    assert (crashed.attempt, crashed.worker, crashed.phase) == (
        undisturbed.attempt,
        undisturbed.worker,
        undisturbed.phase,
    )


@st.composite
def any_elastic_world(draw) -> tuple:
    """Pods of earlier attempts, of the current one, and of the next, with which the job is about to grow."""
    made = job(workers=draw(st.integers(REQUESTS, LIMITS)), **ELASTIC, suspend=draw(st.booleans()))
    attempt = draw(st.integers(1, 3))
    members = draw(st.sampled_from(["", "0-1", "0,2-3", "1-3", "0-3"]))
    status = {
        "phase": draw(st.sampled_from(["Pending", "Starting", "Running", "Restarting"])),
        "attempt": attempt,
        "publishedAttempt": draw(st.sampled_from([attempt - 1, attempt])),
        "worker": {"members": members, "replicas": len(indexes.parse(members)) or 4},
        "lastResizeTime": draw(st.sampled_from(["", "2027-01-15T07:59:50Z", "2027-01-15T07:00:00Z"])),
        "observedGeneration": 1,
    }
    made = having(made, Status.model_validate(status))
    before_start = [PodPhase.PENDING, PodPhase.WAITING, PodPhase.FAILED]
    lacking = set(range(LIMITS)) - (indexes.parse(members) or {*range(LIMITS)})
    of = {index: draw(st.integers(max(1, attempt - 1), attempt + (index in lacking))) for index in range(LIMITS)}
    pods = [
        pod(
            made,
            "worker",
            index,
            draw(st.sampled_from(before_start if of[index] > attempt else [*PodPhase])),
            attempt=of[index],
            deletion_due=draw(st.sampled_from([None, None, NOON - 60, NOON + 60])),
            disrupted=draw(st.booleans()),
            reason=draw(st.sampled_from(["", "Unschedulable"])),
            node=draw(st.sampled_from(["", "node-1"])),
            created=draw(st.sampled_from([NOON - 1, NOON - 100])),
            scheduling_since=draw(st.sampled_from([0.0, NOON - 1, NOON - 1000])),
        )
        for index in range(LIMITS)
        if draw(st.booleans())
    ]
    return made, World(pods=tuple(pods), environments=dict.fromkeys(draw(st.lists(st.integers(1, 3))), "uid"))


@examples(250)
@given(any_elastic_world())
def test_the_same_view_gives_the_same_plan_and_no_pod_is_created_over_another(view):
    made, seen = view
    decided = plan(made, seen, NOON)
    assert decided == plan(made, seen, NOON)
    created = {one.name for one in decided.actions if isinstance(one, Create) and one.kind is Kind.POD}
    assert not created & {one.name for one in decided.actions if isinstance(one, Delete) and one.kind is Kind.POD}
    assert not created & {one.name for one in seen.pods}


@examples(250)
@given(any_elastic_world())
def test_planning_again_from_a_report_reports_the_same_size_and_counters(view):
    made, seen = view
    first = plan(made, seen, NOON)
    again = plan(having(made, first.status), seen, NOON)
    for counter in COUNTERS:
        assert getattr(again.status, counter) == getattr(first.status, counter)
    assert again.status.role(Role.WORKER).members == first.status.role(Role.WORKER).members
