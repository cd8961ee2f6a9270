"""Laws of the planner, for any life of a job."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from paddlejob.api.types import Status
from paddlejob.plan import Create, Delete, Kind, Plan, PodPhase, RecordEvent, World, plan
from tests.support.builders import NOON, all_pods, having, job, pod, world
from tests.support.model import Model

PODS = ("mnist-ps-0", "mnist-worker-0", "mnist-worker-1")
SHAPES = st.fixed_dictionaries(
    {
        "ps": st.sampled_from([0, 1]),
        "cleanPodPolicy": st.sampled_from(["Always", "Never", "OnFailure", "OnCompletion"]),
        "intranet": st.sampled_from(["PodIP", "Service", "Host"]),
        "backoffLimit": st.integers(0, 2),
    }
)
BLOWS = st.lists(st.tuples(st.sampled_from(["fail", "succeed", "delete", "evict"]), st.sampled_from(PODS)), max_size=6)


def strike(model: Model, blow: str, name: str) -> None:
    match blow:
        case "fail":
            model.end(name, 1)
        case "succeed":
            model.end(name, 0)
        case "delete":
            model.pods.pop(name, None)
        case "evict":
            model.change(name, phase=PodPhase.FAILED, disrupted=True, reason="Evicted")


async def life(shape: dict, blows: list[tuple[str, str]], crashes: list[int]) -> Model:
    """A job's life with a blow each time it has settled; the operator dies after so many writes, again and again."""
    model = Model(job(**shape))
    await model.settle()
    for number, (blow, name) in enumerate(blows):
        if model.status.phase != "Running":
            break
        strike(model, blow, name)
        model.crash_after = crashes[number] if number < len(crashes) else None
        await model.settle()
        model.crash_after = None
    return model


def end_of(model: Model) -> tuple:
    status = model.status
    objects = (
        sorted((one.name, one.attempt, one.phase) for one in model.pods.values()),
        sorted(model.environments),
        sorted(model.services),
    )
    return (status.phase, status.reason, status.restarts, status.disruptions, status.attempt, objects)


@settings(max_examples=150, deadline=None)
@given(shape=SHAPES, blows=BLOWS, crashes=st.lists(st.integers(0, 8), max_size=6))
def test_a_crash_between_any_two_steps_changes_nothing_in_the_end(shape, blows, crashes):
    undisturbed = asyncio.run(life(shape, blows, []))
    crashed = asyncio.run(life(shape, blows, crashes))
    assert end_of(crashed) == end_of(undisturbed)


@settings(max_examples=100, deadline=None)
@given(shape=SHAPES, blows=BLOWS)
def test_counters_never_fall_and_a_finished_job_stays_finished(shape, blows):
    async def watch() -> None:
        model = Model(job(**shape))
        seen = [model.status]
        report = model.report

        async def noting(job_, status: Status) -> None:
            await report(job_, status)
            seen.append(status)

        model.report = noting
        await model.settle()
        for blow, name in blows:
            strike(model, blow, name)
            await model.settle()
        for before, after in pairwise(seen):
            for counter in ("attempt", "publishedAttempt", "restarts", "disruptions"):
                assert getattr(after, counter) >= getattr(before, counter)
            assert not before.finished or after.phase == before.phase

    asyncio.run(watch())


@st.composite
def any_world(draw) -> tuple:
    """Pods are of the current attempt or an earlier one: an attempt is recorded before its pods are made."""
    shape = draw(SHAPES)
    made = job(**shape, suspend=draw(st.booleans()))
    phase = draw(st.sampled_from([None, "Pending", "Starting", "Running", "Restarting", "Suspended", "Failed"]))
    attempt = draw(st.integers(0 if phase == "Suspended" else 1, 3)) if phase else 0
    status = {"phase": phase, "attempt": attempt, "publishedAttempt": draw(st.integers(0, attempt))} if phase else {}
    if phase == "Failed":
        status["completionTime"] = "2027-01-15T08:00:00Z"
    made = having(made, Status.model_validate(status))
    pods = [
        pod(
            made,
            role,
            index,
            draw(st.sampled_from([*PodPhase])),
            attempt=draw(st.integers(1, max(1, attempt))),
            deletion_due=draw(st.sampled_from([None, NOON - 60, NOON + 60])),
            disrupted=draw(st.booleans()),
            reason=draw(st.sampled_from(["", "Unschedulable", "OOMKilled", "Evicted"])),
        )
        for role, index in (("ps", 0), ("worker", 0), ("worker", 1))
        if role in made.spec.roles and draw(st.booleans())
    ]
    environments = dict.fromkeys(draw(st.lists(st.integers(1, 3), max_size=3)), "uid")
    return made, World(pods=tuple(pods), environments=environments)


@settings(max_examples=400, deadline=None)
@given(any_world())
def test_the_same_view_gives_the_same_plan_and_no_name_is_both_created_and_deleted(view):
    made, seen = view
    decided = plan(made, seen, NOON)
    assert decided == plan(made, seen, NOON)
    created = {(one.kind, one.name) for one in decided.actions if isinstance(one, Create)}
    deleted = {(one.kind, one.name) for one in decided.actions if isinstance(one, Delete)}
    assert not created & deleted
    taken = {one.name for one in seen.pods}
    assert not {name for kind, name in created if kind is Kind.POD} & taken, "no pod is created over another"


@settings(max_examples=200, deadline=None)
@given(any_world())
def test_a_report_is_final_planning_again_from_it_reports_the_same(view):
    made, seen = view
    first = plan(made, seen, NOON)
    again = plan(having(made, first.status), seen, NOON)
    assert again.status.phase == first.status.phase
    assert again.status.attempt == first.status.attempt
    assert again.status.restarts == first.status.restarts, "one failure is counted once, however often it is seen"


def test_a_settled_world_yields_no_action():
    made = job(ps=1)
    settled = having(made, Status(phase="Running", attempt=1, publishedAttempt=1, startTime="2027-01-15T08:00:00Z"))
    view = world(*all_pods(settled), environments={1: "uid"})
    first: Plan = plan(settled, view, NOON)
    again = plan(having(settled, first.status), view, NOON)
    assert not [action for action in again.actions if not isinstance(action, RecordEvent)]
    assert again.status == first.status
