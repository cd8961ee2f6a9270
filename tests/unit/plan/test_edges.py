"""Cases at the edge of a policy, each of which a small change would get wrong."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import Create, Kind, PodPhase, plan
from tests.support.builders import NOON, all_pods, job, running, world
from tests.support.model import Model


async def test_a_pod_whose_init_container_failed_because_it_was_evicted_was_rejected():
    model = Model(job(workers=2))
    await model.settle_until_created()
    model.tick()
    model.change("mnist-worker-0", phase=PodPhase.PENDING)
    ended = {"init_failed": True, "disrupted": True, "reason": "Evicted", "message": "low on memory"}
    model.change("mnist-worker-1", node="node-1", phase=PodPhase.FAILED, exit_code=137, **ended)
    await model.step()
    assert model.status.reason == "PodRejected"
    assert "could not start on node node-1 (Evicted)" in model.status.message


@pytest.mark.parametrize("suspend", [False, True])
def test_a_service_that_was_deleted_is_restored_unless_the_job_is_being_suspended(suspend: bool):
    made = running(job(intranet="Service", suspend=suspend))
    decided = plan(made, world(*all_pods(made), environments={1: "uid"}), NOON)
    created = [action for action in decided.actions if isinstance(action, Create) and action.kind is Kind.SERVICE]
    assert bool(created) is not suspend
    if suspend:
        assert decided.status.phase is Phase.SUSPENDED
