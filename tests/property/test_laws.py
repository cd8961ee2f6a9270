"""Laws of the planner, for any life of a job, on models of both backends."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase, Role, Status
from paddlejob.plan import Create, Delete, Kind, Plan, PodPhase, RecordEvent, World, indexes, plan
from paddlejob.plan.restarts import replacement_counts
from tests.support.builders import NOON, all_pods, having, job, pod, world
from tests.support.examples import examples
from tests.support.local_model import LocalModel
from tests.support.model import Crash, Model

PODS = ("mnist-ps-0", "mnist-worker-0", "mnist-worker-1")
SHAPES = st.fixed_dictionaries(
    {
        "ps": st.sampled_from([0, 1]),
        "cleanPodPolicy": st.sampled_from(["Always", "Never", "OnFailure", "OnCompletion"]),
        "intranet": st.sampled_from(["PodIP", "Service", "Host"]),
        "backoffLimit": st.integers(0, 2),
    }
)
FAULT = st.tuples(st.sampled_from(["fail", "succeed", "delete", "evict"]), st.sampled_from(PODS))
FAULTS = st.lists(FAULT, max_size=6)
EARLY_FAULT = st.sampled_from(["reject", "fail init", "stick", "delete", "fits nowhere", "crash"])
BEFORE_START = st.lists(st.tuples(EARLY_FAULT, st.sampled_from(PODS)), max_size=8)
"""What happens to pods before training begins, one thing after the other."""
CRASHES = st.lists(st.integers(0, 12), max_size=7)
"""How many writes the engine survives while it builds the job, then after each fault."""
COUNTERS = ("attempt", "publishedAttempt", "restarts", "disruptions", "startupTimeouts")
both_backends = pytest.mark.parametrize("backend", [Model, LocalModel])


def inject(model: Model, fault: str, name: str) -> None:
    match fault:
        case "fail":
            model.end(name, 1)
        case "succeed":
            model.end(name, 0)
        case "delete":
            model.pods.pop(name, None)
        case "evict":
            model.change(name, phase=PodPhase.FAILED, disrupted=True, reason="Evicted")


def disturb_start(model: Model, fault: str, name: str) -> None:
    """Something happens to a pod that is not running yet."""
    one = model.pods.get(name)
    if one is None or one.phase is PodPhase.RUNNING or one.ended or one.deleting:
        return
    match fault:
        case "reject":
            model.change(name, node="node-1", phase=PodPhase.FAILED, disrupted=True, reason="OutOfcpu")
        case "fail init":
            model.change(name, node="node-1", phase=PodPhase.FAILED, init_failed=True, exit_code=1)
        case "stick":
            model.schedule(name)
            model.change(name, phase=PodPhase.PENDING, reason="ImagePullBackOff", scheduling_since=model.now - 601)
        case "delete":
            model.pods.pop(name)
        case "fits nowhere":
            model.change(name, phase=PodPhase.PENDING, address="", node="")
            model.fits_nowhere(name)


async def start_with_faults(
    shape: dict, faults: list[tuple[str, str]], crashes: list[int]
) -> tuple[Model, list[Status]]:
    """Start a job while its pods fail and its engine crashes, then let it recover."""
    model = Model(job(**shape))
    seen = [model.status]
    report = model.report

    async def noting(job_, status: Status) -> None:
        await report(job_, status)
        seen.append(status)

    model.report = noting
    for number, (fault, name) in enumerate(faults):
        await _step_or_crash(model, crashes[number] if number < len(crashes) else None)
        if fault == "crash":
            model.crash()
        else:
            disturb_start(model, fault, name)
        await _step_or_crash(model, None)
        model.now += 1
    model.crash_after = None
    for _ in range(4):
        for name, one in list(model.pods.items()):
            if one.phase is PodPhase.PENDING:
                model.change(name, reason="", address="", node="")
        await model.settle(200)
    return model, seen


async def _step_or_crash(model: Model, crash_after: int | None) -> None:
    model.crash_after = crash_after
    try:
        await model.step()
    except Crash:
        model.crash()
    model.crash_after = None
    for one in list(model.pods.values()):
        if one.deleting:
            del model.pods[one.name]


async def life(backend: type[Model], shape: dict, faults: list[tuple[str, str]], crashes: list[int]) -> Model:
    """A job's life: a fault each time it has settled, and a crash of the engine during each reaction."""
    model = backend(job(**shape))
    model.crash_after = crashes[0] if crashes else None
    await model.settle()
    for number, (fault, name) in enumerate(faults, start=1):
        if model.status.phase != "Running":
            break
        inject(model, fault, name)
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


@examples(150)
@given(shape=SHAPES, faults=FAULTS, crashes=CRASHES)
def test_where_pods_outlive_the_engine_a_crash_changes_nothing_in_the_end(shape, faults, crashes):
    undisturbed = asyncio.run(life(Model, shape, faults, []))
    crashed = asyncio.run(life(Model, shape, faults, crashes))
    assert end_of(crashed) == end_of(undisturbed)


@examples(100)
@given(shape=SHAPES, fault=FAULT, crashes=st.lists(st.integers(0, 12), min_size=1, max_size=2))
def test_where_pods_die_with_the_engine_a_crash_costs_at_most_one_disruption(shape, fault, crashes):
    undisturbed = asyncio.run(life(LocalModel, shape, [fault], [])).status
    model = asyncio.run(life(LocalModel, shape, [fault], crashes))
    assert model.status.phase in (undisturbed.phase, Phase.RUNNING)
    assert model.status.restarts in (undisturbed.restarts, 0), "the failed pod may be lost before it is recorded"
    assert model.status.disruptions <= undisturbed.disruptions + model.crashes


@both_backends
@examples(60)
@given(shape=SHAPES, faults=FAULTS, crashes=CRASHES)
def test_a_crash_neither_loses_nor_doubles_a_rebuild(backend, shape, faults, crashes):
    status = asyncio.run(life(backend, shape, faults, crashes)).status
    assert status.attempt == 1 + status.restarts + status.disruptions
    assert status.restarts <= min(len(faults), shape["backoffLimit"])


@both_backends
@examples(60)
@given(shape=SHAPES, faults=FAULTS, crashes=CRASHES)
def test_in_the_end_there_is_what_the_status_says_and_nothing_else(backend, shape, faults, crashes):
    model = asyncio.run(life(backend, shape, faults, crashes))
    status, attempt = model.status, model.status.attempt
    assert {one.attempt for one in model.pods.values()} <= {attempt}
    assert set(model.environments) <= {attempt}
    if status.phase is Phase.RUNNING:
        done = indexes.parse(status.role(Role.WORKER).finished)
        wanted = {name for name in PODS[0 if shape["ps"] else 1 :] if not _is_done(name, done)}
        assert wanted <= model.pods.keys()
    if backend is LocalModel and status.finished:
        assert all(one.ended for one in model.pods.values()), "no process outlives its job"


def _is_done(name: str, done: frozenset[int]) -> bool:
    return "worker" in name and int(name.rpartition("-")[2]) in done


@both_backends
@examples(60)
@given(shape=SHAPES, faults=FAULTS)
def test_counters_never_fall_and_a_finished_job_stays_finished(backend, shape, faults):
    async def watch() -> None:
        model = backend(job(**shape))
        seen = [model.status]
        report = model.report

        async def noting(job_, status: Status) -> None:
            await report(job_, status)
            seen.append(status)

        model.report = noting
        await model.settle()
        for fault, name in faults:
            inject(model, fault, name)
            await model.settle()
        for before, after in pairwise(seen):
            for counter in COUNTERS:
                assert getattr(after, counter) >= getattr(before, counter)
            assert not before.finished or after.phase == before.phase

    asyncio.run(watch())


@examples(80)
@given(shape=SHAPES, faults=BEFORE_START, crashes=CRASHES)
def test_whatever_happens_before_training_begins_the_job_ends_up_running_or_failed(shape, faults, crashes):
    model, _ = asyncio.run(start_with_faults(shape, faults, crashes))
    assert model.status.phase in (Phase.RUNNING, Phase.FAILED)
    if model.status.phase is Phase.FAILED:
        assert model.status.reason == "BackoffLimitExceeded"


@examples(80)
@given(shape=SHAPES, faults=BEFORE_START, crashes=CRASHES)
def test_before_training_begins_too_no_counter_falls_and_every_attempt_has_its_cause(shape, faults, crashes):
    model, seen = asyncio.run(start_with_faults(shape, faults, crashes))
    for before, after in pairwise(seen):
        for counter in COUNTERS:
            assert getattr(after, counter) >= getattr(before, counter)
        assert after.attempt <= before.attempt + 1, "no attempt without a record"
        if after.attempt == before.attempt:
            assert _total(after) >= _total(before), "a replacement is not forgotten"
    status = model.status
    released = sum(one.reason in ("PartiallyScheduled", "PartiallyCreated") for one in model.events)
    assert status.attempt <= 1 + status.restarts + status.disruptions + status.startupTimeouts + released
    assert all(count <= 3 for count in replacement_counts.parse(status.replacements).values())


@examples(60)
@given(shape=SHAPES, fault=st.sampled_from(["reject", "fail init", "stick"]), crash_after=st.integers(0, 6))
def test_a_crash_neither_loses_nor_doubles_a_replacement(shape, fault, crash_after):
    async def started(crash_after: int | None) -> Status:
        model = Model(job(**shape))
        await model.settle_until_created()
        model.tick()
        disturb_start(model, fault, "mnist-worker-1")
        await _step_or_crash(model, crash_after)
        await model.settle()
        return model.status

    assert asyncio.run(started(crash_after)).replacements == asyncio.run(started(None)).replacements == "worker-1:1"


def _total(status: Status) -> int:
    return sum(replacement_counts.parse(status.replacements).values())


@st.composite
def any_world(draw) -> tuple:
    """Pods are of the current attempt or an earlier one: an attempt is recorded before its pods are made."""
    shape = draw(SHAPES)
    made = job(**shape, suspend=draw(st.booleans()))
    phase = draw(st.sampled_from([None, "Pending", "Starting", "Running", "Restarting", "Suspended", "Failed"]))
    attempt = draw(st.integers(0 if phase == "Suspended" else 1, 3)) if phase else 0
    status = {"phase": phase, "attempt": attempt, "publishedAttempt": draw(st.integers(0, attempt))} if phase else {}
    if phase:
        status["replacements"] = draw(st.sampled_from(["", "worker-1:1", "worker-0:3"]))
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
            node=draw(st.sampled_from(["", "node-1"])),
            init_failed=draw(st.booleans()),
            nominated=draw(st.booleans()),
            scheduling_since=draw(st.sampled_from([0.0, NOON - 1, NOON - 1000])),
            replacement=draw(st.integers(0, 2)),
        )
        for role, index in (("ps", 0), ("worker", 0), ("worker", 1))
        if role in made.spec.roles and draw(st.booleans())
    ]
    environments = dict.fromkeys(draw(st.lists(st.integers(1, 3), max_size=3)), "uid")
    return made, World(pods=tuple(pods), environments=environments)


@examples(400)
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


@examples(200)
@given(any_world())
def test_a_report_is_final_planning_again_from_it_reports_the_same(view):
    made, seen = view
    first = plan(made, seen, NOON)
    again = plan(having(made, first.status), seen, NOON)
    assert again.status.phase == first.status.phase
    assert again.status.attempt == first.status.attempt
    assert again.status.restarts == first.status.restarts, "one failure is counted once, however often it is seen"
    assert again.status.replacements == first.status.replacements, "and so is one replacement"
    assert again.status.startupTimeouts == first.status.startupTimeouts


def test_a_settled_world_yields_no_action():
    made = job(ps=1)
    settled = having(made, Status(phase="Running", attempt=1, publishedAttempt=1, startTime="2027-01-15T08:00:00Z"))
    view = world(*all_pods(settled), environments={1: "uid"})
    first: Plan = plan(settled, view, NOON)
    again = plan(having(settled, first.status), view, NOON)
    assert not [action for action in again.actions if not isinstance(action, RecordEvent)]
    assert again.status == first.status
