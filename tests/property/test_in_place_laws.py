"""Laws of restarts in place, for any interleaving of faults, lost connections, crashes of the operator and changes.

The model itself checks with every start of a program that nothing of an earlier attempt runs in any pod, and that no
program is started twice (tests/support/agent_model.py).
"""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase
from paddlejob.plan.world import AgentState
from tests.support.agent_model import COMMAND, AgentModel, in_place_job
from tests.support.builders import job, template
from tests.support.examples import examples
from tests.support.model import Crash, Model

PODS = ("mnist-worker-0", "mnist-worker-1")
pods = st.sampled_from(PODS)
faults = st.one_of(
    st.tuples(st.sampled_from(["fail", "kill", "evict", "delete", "disconnect", "connect", "hang"]), pods),
    st.tuples(st.just("crash"), st.integers(0, 4)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0, 12.0, 61.0])),
    st.tuples(st.sampled_from(["suspend", "scale"]), st.booleans()),
)
spec = {"worker_": {"template": template(command=COMMAND)}, "restartStrategy": "InPlace", "backoffLimit": 100}


def inflict(model: AgentModel, fault: str, on: object) -> None:
    assert model.job is not None
    agent = model.agents.get(model.pods[on].uid) if on in model.pods else None
    match fault:
        case "fail":
            model.fail_program(str(on))
        case "kill":
            model.end(str(on), 137)
        case "evict":
            model.change(str(on), phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
        case "delete":
            model.pods.pop(str(on), None)
        case "disconnect" | "connect" if agent:
            agent.connected = fault == "connect"
        case "hang" if agent:
            agent.obedient = False
        case "crash":
            model.crash_after = on if isinstance(on, int) else None
        case "wait":
            model.now += on if isinstance(on, float) else 0.0
        case "suspend":
            model.edit(**spec, suspend=bool(on))
        case "scale":
            model.edit(**spec, workers=3 if on else 2, elastic=1)


async def steps(model: AgentModel, count: int) -> None:
    for _ in range(count):
        try:
            await model.step()
        except Crash:
            model.crash()
        model.tick()
        model.now += 1.0


async def train_to_the_end(model: AgentModel) -> None:
    """Whatever happened, from now on nothing does."""
    model.crash_after = None
    model.edit(**spec)
    for _ in range(5):
        for agent in model.agents.values():
            agent.connected = agent.obedient = True
        await model.settle(limit=200)
    for name in list(model.pods):
        model.end(name, 0)
    await model.settle()


@examples(100)
@given(happened=st.lists(st.tuples(faults, st.integers(0, 3)), max_size=14))
def test_whatever_happens_to_agents_pods_and_operator_no_two_attempts_run_at_once_and_the_job_ends(happened):
    async def live() -> AgentModel:
        model = AgentModel(in_place_job(backoffLimit=100))
        await model.settle()
        for (fault, on), then in happened:
            inflict(model, fault, on)
            await steps(model, then)
        await train_to_the_end(model)
        return model

    assert asyncio.run(live()).status.phase is Phase.COMPLETED


@examples(60)
@given(
    ends=st.lists(
        st.tuples(st.sampled_from(["fail", "evict", "delete"]), pods, st.sampled_from([0.0, 20.0, 61.0])), max_size=8
    ),
    limit=st.integers(0, 4),
)
def test_counters_and_the_end_of_a_job_are_the_same_as_with_new_pods(ends, limit):
    async def live(model: Model) -> Model:
        await model.settle()
        for how, pod, seconds in ends:
            model.now += seconds
            if how == "fail" and isinstance(model, AgentModel):
                model.fail_program(pod)
            elif how == "fail":
                model.end(pod, 1)
            elif how == "evict":
                model.change(pod, phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
            else:
                model.pods.pop(pod, None)
            await model.settle(limit=200)
        return model

    in_place = asyncio.run(live(AgentModel(in_place_job(backoffLimit=limit)))).status
    recreated = asyncio.run(live(Model(job(backoffLimit=limit)))).status
    names = ("phase", "reason", "attempt", "restarts", "disruptions", "restartsWithoutProgress")
    assert {name: getattr(in_place, name) for name in names} == {name: getattr(recreated, name) for name in names}


@examples(60)
@given(crashes=st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_a_crash_of_the_operator_at_any_point_neither_loses_nor_doubles_a_restart(crashes):
    async def live() -> AgentModel:
        model = AgentModel(in_place_job(backoffLimit=100))
        await model.settle()
        for count, after in enumerate(crashes, 1):
            model.now += 61
            model.fail_program("mnist-worker-1")
            model.crash_after = after
            await model.settle(limit=200)
            model.crash_after = None
            await model.settle(limit=200)
            assert (model.status.phase, model.status.restarts) == (Phase.RUNNING, count)
            assert {model.agent(name).state for name in model.pods} == {AgentState.RUNNING}
        return model

    model = asyncio.run(live())
    assert model.status.attempt == len(crashes) + 1
    assert model.status.disruptions == 0
