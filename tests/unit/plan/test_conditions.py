"""Conditions by Kubernetes' conventions: how far a start is, why not further, and nothing that was true only once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob, Phase, Status
from paddlejob.contract import LABEL_QUEUE
from paddlejob.plan import Pod, PodGroup, PodPhase, Rejection, plan
from tests.support.builders import NOON, all_pods, having, job, pod, running, world
from tests.support.model import Model


def planned(made: PaddleJob, *pods: Any, **more: Any) -> Status:
    return plan(made, world(*pods, **more), NOON).status


def states(status: Status) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions}


def message(status: Status, type_: str) -> str:
    found = status.condition(type_)
    assert found is not None, status.conditions
    return found.message


def unplaced(made: PaddleJob, index: int) -> Pod:
    return pod(made, "worker", index, PodPhase.PENDING, reason="Unschedulable", node="", address="")


def test_a_new_job_has_no_pods_yet():
    assert states(planned(job())) == {
        "PodsCreated": ("False", "PodsNotReady"),
        "PodsScheduled": ("False", "Scheduling"),
        "StartBarrierOpen": ("False", "PodsNotReady"),
    }


def test_a_job_that_exceeds_its_quota_says_so_where_its_pods_are_created():
    rejected = Rejection("mnist-worker-0", "Forbidden", "exceeded quota: pods", NOON)
    status = planned(job(), rejections=(rejected,))
    assert states(status)["PodsCreated"] == ("False", "QuotaExceeded")
    assert "exceeds the namespace's quota" in message(status, "PodsCreated")


def test_a_job_whose_pods_fit_nowhere_says_so_where_they_are_scheduled():
    made = job()
    first = replace(unplaced(made, 0), message="0/3 nodes are available")
    status = planned(made, first, pod(made, "worker", 1, PodPhase.WAITING))
    assert states(status)["PodsCreated"] == ("True", "AllCreated")
    assert states(status)["PodsScheduled"] == ("False", "Unschedulable")
    assert message(status, "PodsScheduled") == "1 of 2 pods have a node: 0/3 nodes are available"
    assert message(status, "StartBarrierOpen").startswith("1 of 2 pods are ready to start")


@pytest.mark.parametrize(("queue", "reason"), [("", "SchedulingGated"), ("research", "PodsNotReady")])
def test_a_job_whose_pods_are_gated_says_so_unless_its_queue_removes_the_gates_in_a_moment(queue: str, reason: str):
    made = job(status={"attempt": 1, "phase": "Pending", "queue": queue}, labels={LABEL_QUEUE: queue} if queue else {})
    gated = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
    status = planned(made, *all_pods(made, PodPhase.PENDING, node="", address="", **gated))
    assert (status.reason, states(status)["PodsScheduled"]) == (reason, ("False", "SchedulingGated"))
    if not queue:
        assert status.message == (
            "2 of 2 pods wait until their scheduling gates are removed; remove schedulingGates from the template, or "
            "check the controller that set them (mnist-worker-0)"
        )


def test_only_a_gang_has_a_condition_for_its_admission():
    made = job(schedulingPolicy={"queue": "research"})
    group = PodGroup("mnist", "u", owned=False, phase="Pending", message="queue research is full")
    pods = [unplaced(made, index) for index in range(2)]
    status = planned(made, *pods, pod_groups=(group,))
    assert states(status)["GangAdmitted"] == ("False", "GangNotAdmitted")
    assert message(status, "GangAdmitted") == "queue research is full"
    assert states(planned(made, *pods, pod_groups=(replace(group, phase="Running"),)))["GangAdmitted"][0] == "True"
    assert "GangAdmitted" not in states(planned(job()))


async def test_each_is_true_while_the_job_runs_and_for_which_generation():
    model = Model(job(schedulingPolicy={"minAvailable": 2}))
    await model.settle()
    assert {one.type: (one.status, one.observedGeneration) for one in model.status.conditions} == {
        "Running": ("True", 1),
        "PodsCreated": ("True", 1),
        "GangAdmitted": ("True", 1),
        "PodsScheduled": ("True", 1),
        "StartBarrierOpen": ("True", 1),
    }
    model.edit(schedulingPolicy={"minAvailable": 2}, ttlSecondsAfterFinished=5)
    await model.settle()
    assert {one.observedGeneration for one in model.status.conditions} == {2}


async def test_a_new_attempt_begins_anew_and_the_phases_before_say_what_the_job_does_now():
    model = Model(job())
    await model.settle()
    model.end("mnist-worker-1", 1)
    await model.step()
    assert states(model.status) == {
        "Running": ("False", "ProgramFailed"),
        "Restarting": ("True", "ProgramFailed"),
        "PodsCreated": ("False", "ProgramFailed"),
        "PodsScheduled": ("False", "Scheduling"),
        "StartBarrierOpen": ("False", "PodsNotReady"),
    }
    await model.settle()
    assert states(model.status)["Restarting"] == ("False", "Running")
    assert message(model.status, "Restarting") == "all pods are running"


async def test_the_message_of_a_true_condition_is_that_of_the_job():
    model = Model(job(workers=3))
    await model.settle()
    model.now += 60
    model.end("mnist-worker-0", 0)
    await model.settle()
    assert message(model.status, "Running") == model.status.message == "1 of 3 workers have finished"


async def test_a_job_that_has_ended_or_is_suspended_is_not_on_its_way():
    model = Model(job(workers=1))
    await model.settle()
    model.edit(workers=1, suspend=True)
    await model.settle()
    assert set(states(model.status)) == {"Running", "Suspended"}
    model.edit(workers=1)
    await model.settle()
    model.end("mnist-worker-0", 0)
    await model.settle()
    assert states(model.status) == {
        "Running": ("False", "Completed"),
        "Suspended": ("False", "Completed"),
        "Completed": ("True", "Completed"),
    }


async def test_how_a_job_ended_stays_true_for_every_generation():
    model = Model(job(workers=1))
    await model.settle()
    model.end("mnist-worker-0", 0)
    await model.settle()
    before = model.status.conditions
    model.edit(workers=1, ttlSecondsAfterFinished=3600)
    await model.settle()
    assert {one.observedGeneration for one in model.status.conditions} == {2}, "kubectl wait ignores older ones"
    kept = {"observedGeneration": 1}
    assert tuple(one.model_copy(update=kept) for one in model.status.conditions) == before


def test_conditions_of_a_job_that_an_older_version_ended_are_left_as_they_are():
    old = {"type": "Completed", "status": "True", "reason": "Completed", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    ended = {"phase": "Completed", "attempt": 1, "completionTime": "2027-01-15T08:00:00Z", "conditions": [old]}
    made = having(job(), Status.model_validate(ended))
    assert planned(made).conditions == made.status.conditions, "an upgrade does not write to every job that ever ended"


def test_the_time_is_that_of_the_last_change_of_the_status():
    made = running(job(workers=1))
    first = planned(made, *all_pods(made), environments={1: "u"})
    later = plan(having(made, first), world(*all_pods(made), environments={1: "u"}), NOON + 100).status
    assert [one.lastTransitionTime for one in later.conditions] == [one.lastTransitionTime for one in first.conditions]
    assert later.phase is Phase.RUNNING
