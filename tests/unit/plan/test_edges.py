"""Cases at the edge of a policy, each of which a small change would get wrong."""

from __future__ import annotations

import pytest

from paddlejob import contract
from paddlejob.api.types import Phase, Role
from paddlejob.plan import Create, Kind, PodPhase, names, plan, times
from paddlejob.plan.objects.pod import pod_manifest
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


def test_no_training_container_starts_without_the_environment_of_its_attempt():
    made = job()
    own = [{"configMapRef": {"name": "settings"}}]
    made.spec.worker.template["spec"]["containers"][0]["envFrom"] = own
    (container,) = pod_manifest(made, Role.WORKER, 0, 3, "build")["spec"]["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": names.environment(made, 3)}}, *own]


def test_the_environment_carries_the_number_of_its_attempt():
    made = running(job())
    decided = plan(made, world(*all_pods(made, PodPhase.WAITING)), NOON)
    (created,) = [one for one in decided.actions if isinstance(one, Create) and one.kind is Kind.ENVIRONMENT]
    assert created.manifest["metadata"]["labels"][contract.LABEL_ATTEMPT] == "1"
    assert created.manifest["metadata"]["name"] == created.name == names.environment(made, 1)


def test_a_message_without_a_reason_is_not_taken_for_one():
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.PENDING, message="pulling image")
    status = plan(made, world(*pods), NOON).status
    assert "create what is missing" not in status.message
    assert status.reason
