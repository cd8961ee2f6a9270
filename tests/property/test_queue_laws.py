"""Laws of jobs in a queue of Kueue, for any faults, evictions, edits and crashes of the operator.

The model judges each step: no pod without quota, no quota given back while a pod that needs it is left.
"""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from paddlejob.api.types import Phase, Role
from tests.support.kueue_model import KueueModel, queued_job
from tests.support.model import Crash

SHAPES = st.sampled_from(
    [
        {"workers": 2},
        {"ps": 1, "workers": 2},
        {"workers": 3, "elastic": 1, "worker_": {"requests": 1, "limits": 4}},
        {"ps": 1, "workers": 2, "elastic": 1, "withGloo": 0},
    ]
)
POLICIES = st.sampled_from(["Always", "Never", "OnFailure", "OnCompletion"])
HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "preempt", "deactivate", "activate", "delete workload", "finish workload", "scale", "suspend", "resume",
                "fail", "succeed", "delete pod", "no quota", "quota", "uninstall", "install",
            ]
        ),
        st.integers(0, 2),
        st.none() | st.integers(0, 6),
    ),
    max_size=10,
)  # fmt: skip


def happen(model: KueueModel, what: str, number: int) -> None:
    worker = f"mnist-worker-{number}"
    match what:
        case "preempt":
            model.preempt()
        case "deactivate" | "activate" if model.raw:
            model.activate(what == "activate")
        case "delete workload":
            model.raw = None
        case "finish workload" if model.raw:
            model.set("Succeeded", "", Finished=True)
        case "scale":
            edit(model, workers=number + 1)
        case "suspend" | "resume":
            edit(model, suspend=what == "suspend")
        case "fail" | "succeed":
            model.end(worker, 1 if what == "fail" else 0, lingers=False)
        case "delete pod":
            model.pods.pop(worker, None)
        case "no quota" | "quota":
            model.quota = 0 if what == "no quota" else 2 + number
        case "uninstall":
            model.installed, model.raw = False, None
        case "install":
            model.installed = True


def edit(model: KueueModel, **changes: object) -> None:
    assert model.job is not None
    spec, metadata = model.job.spec, model.job.metadata
    if "workers" in changes:
        worker = spec.worker.model_copy(update={"replicas": changes.pop("workers")})
        changes["worker"] = worker
    newer = metadata.model_copy(update={"generation": metadata.generation + 1})
    model.job = model.job.model_copy(update={"spec": spec.model_copy(update=changes), "metadata": newer})


async def live(model: KueueModel, happenings: list[tuple[str, int, int | None]]) -> None:
    await model.settle(200)
    for what, number, crash_after in happenings:
        if model.job is None or model.status.finished:
            return
        happen(model, what, number)
        model.crash_after = crash_after
        for _ in range(4):
            try:
                await model.step()
            except Crash:
                model.crash()
            model.tick()
            model.now += 1
        model.crash_after = None


async def come_to_rest(model: KueueModel) -> None:
    """Everything the job needs is there, and its workers succeed."""
    model.quota, model.installed = 100, True
    if model.raw and not model.workload.active:
        model.activate(True)
    edit(model, suspend=False)
    for _ in range(40):
        model.now += 400
        await model.settle(300)
        if model.job is None or model.status.finished:
            break
        for pod in list(model.pods.values()):
            if pod.role is Role.WORKER:
                model.end(pod.name, 0, lingers=False)
    for name in model.pods:
        model.change(name, lingers=False)
    await model.settle(300)


@given(SHAPES, POLICIES, HAPPENINGS)
@settings(max_examples=150, deadline=None)
def test_a_queued_job_ends_and_gives_all_its_quota_back(shape, policy, happenings):
    async def play() -> KueueModel:
        model = KueueModel(queued_job(cleanPodPolicy=policy, backoffLimit=100, **shape))
        await live(model, happenings)
        await come_to_rest(model)
        return model

    model = asyncio.run(play())
    assert model.status.phase in (Phase.COMPLETED, Phase.FAILED), model.status
    assert model.used == 0, "quota leaked"
    if model.raw:
        assert model.workload.is_true("Finished"), model.raw


@given(SHAPES, HAPPENINGS)
@settings(max_examples=100, deadline=None)
def test_losing_quota_is_never_counted_as_a_restart(shape, happenings):
    quiet = {"preempt", "deactivate", "activate", "delete workload", "no quota", "quota", "suspend", "resume"}

    async def play() -> KueueModel:
        model = KueueModel(queued_job(backoffLimit=0, **shape))
        await live(model, [one for one in happenings if one[0] in quiet])
        await come_to_rest(model)
        return model

    status = asyncio.run(play()).status
    assert (status.phase, status.restarts, status.disruptions) == (Phase.COMPLETED, 0, 0)


@given(SHAPES, HAPPENINGS)
@settings(max_examples=60, deadline=None)
def test_a_job_that_is_deleted_leaves_no_workload(shape, happenings):
    async def play() -> KueueModel:
        model = KueueModel(queued_job(ttlSecondsAfterFinished=0, backoffLimit=100, **shape))
        await live(model, happenings)
        if model.job is not None:
            await come_to_rest(model)
        return model

    model = asyncio.run(play())
    assert (model.job, model.raw) == (None, None)
