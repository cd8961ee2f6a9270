"""Laws of conditions, for any life of a job: none is stale, and each tells of the job as it is now."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import Condition, Phase, Status
from paddlejob.plan import PodPhase, plan
from paddlejob.plan.conditions import PHASES
from tests.support.builders import job
from tests.support.examples import examples
from tests.support.model import Model

CHANGES = ("fail", "succeed", "evict", "suspend", "resume", "edit", "less room", "more room")
LIVES = st.lists(st.sampled_from(CHANGES), max_size=8)
POLICIES = st.sampled_from([None, {"queue": "research"}])
STARTED = {"PodsCreated", "PodsScheduled", "StartBarrierOpen"}


class Life:
    def __init__(self, policy: dict[str, str] | None) -> None:
        self.spec: dict[str, Any] = {"backoffLimit": 1, "schedulingPolicy": policy}
        self.model = Model(job(**self.spec))

    async def run(self, changes: list[str]) -> None:
        for change in ("begin", *changes):
            self._make(change)
            for _ in range(12):
                self._check()
                await self.model.step()
                self.model.tick()
                self.model.now += 2

    def _make(self, change: str) -> None:
        model = self.model
        match change:
            case "fail":
                model.end("mnist-worker-0", 1)
            case "succeed":
                model.end("mnist-worker-0", 0)
                model.end("mnist-worker-1", 0)
            case "evict":
                model.change("mnist-worker-1", phase=PodPhase.FAILED, disrupted=True, reason="Evicted")
            case "suspend" | "resume" | "edit":
                self.spec["suspend"] = change == "suspend"
                model.edit(**self.spec)
            case "less room" | "more room":
                model.capacity = 1 if change == "less room" else 2

    def _check(self) -> None:
        """What the planner would report now; an engine may write it some seconds later."""
        assert self.model.job is not None
        status = plan(self.model.job, self.model.world(), self.model.now).status
        found = {one.type: one for one in status.conditions}
        assert len(found) == len(status.conditions), "one of each type"
        assert {one.observedGeneration for one in found.values()} <= {self.model.job.metadata.generation}
        assert all(one.reason and one.message and one.lastTransitionTime for one in found.values())
        check_phases(status, found)
        check_start(status, found)
        for type_, one in found.items():
            before = self.model.status.condition(type_)
            if before and before.status == one.status:
                assert one.lastTransitionTime == before.lastTransitionTime


def check_phases(status: Status, found: dict[str, Condition]) -> None:
    """The condition that the phase names is true and no other; none tells of an earlier reason."""
    phases = {type_: found[type_] for type_ in PHASES if type_ in found}
    assert {type_ for type_, one in phases.items() if one.status == "True"} == {status.phase} & set(PHASES)
    assert {one.reason for one in phases.values()} <= {status.reason}
    assert {one.message for one in phases.values()} <= {status.message, status.headline}


def check_start(status: Status, found: dict[str, Condition]) -> None:
    if status.finished or status.phase is Phase.SUSPENDED:
        assert not found.keys() - set(PHASES), "it is not on its way"
        return
    assert found.keys() >= STARTED
    opened = 0 < status.attempt == status.publishedAttempt
    assert (found["StartBarrierOpen"].status == "True") is opened
    if status.phase is Phase.RUNNING:
        assert {found[type_].status for type_ in STARTED} == {"True"}


@examples(120)
@given(policy=POLICIES, changes=LIVES)
def test_conditions_are_those_of_the_job_as_it_is_now(policy, changes):
    asyncio.run(Life(policy).run(changes))
