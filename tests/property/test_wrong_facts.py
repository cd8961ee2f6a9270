"""Laws for facts that are late, missing, repeated or contradictory: machines report them by clocks of their own."""

from __future__ import annotations

import asyncio
import copy
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase, Role, Status
from paddlejob.kube.store import Store
from paddlejob.objects import transform
from paddlejob.plan import Pod, PodPhase, times
from paddlejob.plan.manifests.pod import pod_manifest
from tests.property.test_laws import COUNTERS, FAULT, FAULTS, SHAPES, both_backends, end_of, inject, life
from tests.support.builders import NOON, job
from tests.support.examples import examples
from tests.support.late_model import LateModel
from tests.support.model import Model

Object = dict[str, Any]
HOUR = 3600
OFFSETS = st.sampled_from([-HOUR, -3, 1, 60, HOUR])
MOMENT = st.integers(-2 * HOUR, 2 * HOUR).map(lambda seconds: times.format(NOON + seconds))
"""Also one in the future, and an end before the start."""
ENDED = st.fixed_dictionaries(
    {"exitCode": st.sampled_from([0, 1, 143])},
    optional={
        "startedAt": MOMENT,
        "finishedAt": MOMENT,
        "reason": st.sampled_from(["Completed", "Error", "OOMKilled", "ContainerStatusUnknown"]),
        "message": st.text(max_size=5),
    },
)
STATE = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"running": st.fixed_dictionaries({}, optional={"startedAt": MOMENT})}),
    st.fixed_dictionaries({"waiting": st.fixed_dictionaries({"reason": st.sampled_from(["", "PodInitializing"])})}),
    st.fixed_dictionaries({"terminated": ENDED}),
)
CONDITION = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["DisruptionTarget", "PodScheduled", "Ready"]),
        "status": st.sampled_from(["True", "False"]),
    },
    optional={"lastTransitionTime": MOMENT, "reason": st.sampled_from(["TerminationByKubelet", "Unschedulable"])},
)


@st.composite
def pods(draw: st.DrawFn) -> Object:
    """A pod as the API server hands it out, with a status of which one part may contradict the other."""
    made = pod_manifest(job(), Role.WORKER, 0, 1, "build")
    made["metadata"] |= {"uid": "uid-1", "resourceVersion": "1", "creationTimestamp": times.format(NOON)}
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": made.get("apiVersion"), "kind": "PaddleJob", "name": "mnist", "uid": "u", "controller": True}
    ]
    if draw(st.booleans()):
        made["metadata"]["deletionTimestamp"] = draw(MOMENT)
    container = made["spec"]["containers"][0]["name"]
    made["spec"]["initContainers"] = [{"name": "prepare"}] if draw(st.booleans()) else []
    made["status"] = {
        "phase": draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])),
        "conditions": draw(st.lists(CONDITION, max_size=3, unique_by=lambda one: one["type"])),
        "containerStatuses": [{"name": container, "state": draw(STATE)}] if draw(st.booleans()) else [],
    }
    if made["spec"]["initContainers"]:
        made["status"]["initContainerStatuses"] = [{"name": "prepare", "state": draw(STATE)}]
    for name, values in {"reason": st.sampled_from(["Evicted", "DeadlineExceeded"]), "startTime": MOMENT}.items():
        if draw(st.booleans()):
            made["status"][name] = draw(values)
    return made


def seen(made: Object) -> Pod:
    found = transform.pod(made).value
    assert found is not None
    return found


def by_another_clock(made: Object, seconds: int) -> Object:
    """The same pod, if the clock of its node had been ahead by this much. Control planes write PodScheduled."""
    shifted = copy.deepcopy(made)
    status = shifted["status"]
    for kind in ("containerStatuses", "initContainerStatuses"):
        for one in status.get(kind) or []:
            for detail in one["state"].values():
                _shift(detail, seconds)
    _shift(status, seconds)
    for one in status["conditions"]:
        if one["type"] != "PodScheduled":
            _shift(one, seconds)
    return shifted


def _shift(part: Object, seconds: int) -> None:
    for name in ("startedAt", "finishedAt", "startTime", "lastTransitionTime"):
        if name in part:
            part[name] = times.format(times.parse(part[name]) + seconds)


@examples(150)
@given(made=pods(), seconds=OFFSETS)
def test_what_is_seen_of_a_pod_does_not_depend_on_the_clock_of_its_node(made: Object, seconds: int):
    assert seen(by_another_clock(made, seconds)) == seen(made)


@examples(150)
@given(made=pods())
def test_a_pod_has_succeeded_only_if_nothing_contradicts_it(made: Object):
    status, found = made["status"], seen(made)
    if found.phase is not PodPhase.SUCCEEDED:
        return
    (container,) = status["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 0
    assert "deletionTimestamp" not in made["metadata"]
    assert status.get("reason") not in ("Evicted", "DeadlineExceeded")
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    assert not any(disrupted.items() <= one.items() for one in status["conditions"])


@examples(100)
@given(data=st.data(), versions=st.lists(st.integers(1, 5), min_size=1, max_size=8), deleted=st.booleans())
def test_a_state_that_is_seen_twice_or_after_a_newer_one_is_not_taken_for_news(data, versions, deleted):
    store: Store[str] = Store(lambda obj: str(obj["metadata"]["resourceVersion"]), lambda value: ())
    told: list[tuple[str | None, str | None]] = []
    store.add_event_handler(lambda old, new: told.append((old, new)))
    at = data.draw(st.integers(0, len(versions))) if deleted else None
    for number, version in enumerate(versions):
        if number == at:
            store.remove(("default", "mnist"), "uid-1", 5)
        metadata = {"namespace": "default", "name": "mnist", "uid": "uid-1", "resourceVersion": str(version)}
        store.put({"metadata": metadata})
    rising = [int(new) for _, new in told if new is not None]
    assert rising == sorted(set(rising))
    newest = None if at is not None and at < len(versions) else str(max(versions))
    assert store.get("default", "mnist") == newest


async def late_life(shape: dict, faults: list[tuple[str, str]], late: int, again: bool) -> Model:
    """As `life`, but each fault is noticed after some steps, and then its pods are seen once more as they were."""
    model = LateModel(job(**shape))
    await model.settle()
    for fault, name in faults:
        if model.status.phase != "Running":
            break
        before = dict(model.pods)
        model.seen = dict(before)
        inject(model, fault, name)
        for _ in range(late):
            await model.step()
        model.seen = None
        await model.step()
        if again:
            model.seen = {**before, **{one: pod for one, pod in model.pods.items() if pod.uid != before[one].uid}}
            await model.step()
            model.seen = None
        await model.settle()
    return model


@examples(100)
@given(shape=SHAPES, faults=FAULTS, late=st.integers(0, 3), again=st.booleans())
def test_news_that_is_late_or_comes_twice_changes_nothing_in_the_end(shape, faults, late, again):
    assert end_of(asyncio.run(late_life(shape, faults, late, again))) == end_of(
        asyncio.run(life(Model, shape, faults, []))
    )


@both_backends
@examples(60)
@given(shape=SHAPES, steps=st.lists(st.tuples(FAULT, OFFSETS), max_size=4))
def test_a_clock_that_is_stepped_costs_no_attempt_and_holds_up_no_restart(backend, shape, steps):
    """The API server's, which the engine goes by, or that of this machine."""

    async def live() -> tuple[Model, list[Status]]:
        model = backend(job(**shape))
        statuses = [model.status]
        report = model.report

        async def noting(job_, status: Status) -> None:
            await report(job_, status)
            statuses.append(status)

        model.report = noting
        await model.settle()
        for (fault, name), seconds in steps:
            inject(model, fault, name)
            await model.step()
            model.now += seconds
            await model.settle(200)
        return model, statuses

    model, statuses = asyncio.run(live())
    for before, after in pairwise(statuses):
        assert all(getattr(after, counter) >= getattr(before, counter) for counter in COUNTERS)
        assert not before.finished or after.phase == before.phase
    assert model.status.attempt == 1 + model.status.restarts + model.status.disruptions
    assert model.status.phase in (Phase.RUNNING, Phase.COMPLETED, Phase.FAILED)
