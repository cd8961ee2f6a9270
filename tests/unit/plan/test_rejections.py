"""Rejected actions: the engine remembers them, the planner decides when each is tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlejob.engine.backend import Rejected
from paddlejob.plan import Create, DeleteJob, Kind, Plan, PodPhase, Rejection, Wake, names, plan
from paddlejob.plan.diagnosis.rejections import describe, hold_back, retry_at
from tests.support.builders import NOON, all_pods, having, job, pod, running, world
from tests.support.model import Model


def rejected(name: str = "mnist-worker-0", message: str = "no", **more: object) -> Rejection:
    return Rejection(name, "Forbidden", message, **{"at": NOON, **more})


def test_nothing_is_created_before_a_rejection_is_due():
    seen = world(rejections=(rejected(),))
    waits = plan(job(), seen, NOON + 1)
    assert not [one for one in waits.actions if isinstance(one, Create)]
    assert waits.wake_at == NOON + 2
    assert [one.name for one in plan(job(), seen, NOON + 2).actions if isinstance(one, Create)] == [
        "mnist-worker-0",
        "mnist-worker-1",
    ]


@pytest.mark.parametrize("newer", ["mnist-worker-0", "mnist-worker-1"])
def test_the_newest_rejection_is_the_one_reported(newer: str):
    older = "mnist-worker-1" if newer == "mnist-worker-0" else "mnist-worker-0"
    found = (rejected(newer, "newer", at=NOON), rejected(older, "older", at=NOON - 9))
    for order in (found, found[::-1]):
        assert "newer" in plan(job(), world(rejections=order), NOON).status.message


def test_no_pod_is_woken_while_a_rejected_environment_is_held_back():
    made = job()
    waiting = having(made, plan(made, world(), NOON).status)
    name = "mnist-env-uid-o-1"
    seen = world(*all_pods(waiting, PodPhase.WAITING), rejections=(rejected(name),))
    decided = plan(waiting, seen, NOON + 1)
    assert not [one for one in decided.actions if isinstance(one, Create) and one.kind is Kind.ENVIRONMENT]
    assert not [one for one in decided.actions if isinstance(one, Wake)]
    assert decided.wake_at == NOON + 2


async def test_a_rejected_environment_causes_no_storm_of_patches():
    model = Model(job(workers=20))
    model.rejects[names.environment(model.job, 1)] = Rejected("Forbidden", "exceeded quota: configmaps")
    await model.step()
    model.tick()
    for _ in range(600):
        await model.step()
        model.now += 0.1
    assert not [one for one in model.done if isinstance(one, Wake)], "no pod can start without its environment"
    assert model.status.reason == "QuotaExceeded"
    model.rejects.clear()
    await model.settle()
    assert model.status.phase == "Running"
    assert len([one for one in model.done if isinstance(one, Wake)]) == 20


def test_a_pod_that_was_just_woken_is_not_woken_again_with_a_new_environment():
    made = running(job())
    pods = all_pods(made, PodPhase.WAITING, woken=1, woken_at=NOON - 1)
    assert not [one for one in plan(made, world(*pods), NOON + 3).actions if isinstance(one, Wake)]
    restored = world(*pods, environments={1: "uid"})
    assert not [one for one in plan(made, restored, NOON).actions if isinstance(one, Wake)]
    started = world(replace(pods[0], phase=PodPhase.RUNNING), pods[1], environments={1: "uid"})
    assert len([one for one in plan(made, started, NOON + 3).actions if isinstance(one, Wake)]) == 1


def test_a_pod_whose_environment_is_gone_is_not_woken():
    made = running(job())
    lost = pod(made, "worker", 0, address="")
    decided = plan(made, world(lost, pod(made, "worker", 1, PodPhase.WAITING)), NOON)
    assert not [one for one in decided.actions if isinstance(one, Wake)]


def test_actions_other_than_creating_are_held_back_too():
    ended = running(job(ttlSecondsAfterFinished=1)).status.model_copy(
        update={"phase": "Completed", "completionTime": "2027-01-15T07:00:00Z"}
    )
    made = having(job(ttlSecondsAfterFinished=1), ended)
    assert plan(made, world(), NOON).actions == (DeleteJob("it ended more than 1 s ago (ttlSecondsAfterFinished)"),)
    held = plan(made, world(rejections=(rejected("DeleteJob", times=3),)), NOON + 1)
    assert (held.actions, held.wake_at) == ((), NOON + 8)


async def test_a_success_ends_the_series():
    model = Model(job(workers=1))
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "no")
    for _ in range(3):
        model.now = await model.step() or model.now
    model.rejects.clear()
    await model.settle()
    assert model.status.phase == "Running"
    del model.pods["mnist-worker-0"]
    model.rejects["mnist-worker-0"] = Rejected("Forbidden", "no")
    await model.step()
    model.now += 60
    await model.step()
    begun = model.now
    assert await model.step() == pytest.approx(begun + 2), "the delay is short again"


def rejection(reason: str = "Forbidden", message: str = "no", **more: float) -> Rejection:
    return Rejection("mnist-worker-0", reason, message, **{"at": NOON, **more})


@pytest.mark.parametrize(
    ("rejected", "reason", "remedy"),
    [
        (rejection("BeingDeleted"), "WaitingForOldPods", "of an earlier job to be deleted"),
        (rejection("NameTaken"), "NameTaken", "delete it or rename the job"),
        (rejection("ApiServerError"), "ApiServerError", "The job needs no change"),
        (rejection(message="exceeded quota: pods"), "QuotaExceeded", "raise the quota or request less"),
        (rejection(message='failed calling webhook "x"'), "WebhookFailed", "`pdj doctor` names it"),
        (rejection(message="denied by policy"), "AdmissionRejected", "change the job accordingly"),
    ],
)
def test_each_kind_of_rejection_has_a_reason_and_a_remedy_and_quotes_the_server(
    rejected: Rejection, reason: str, remedy: str
):
    cause = describe(rejected)
    said, message = cause.reason, cause.message
    assert said == reason
    assert remedy in message
    assert "mnist-worker-0" in message
    assert message.endswith(rejected.message)


def test_a_rejected_action_is_tried_after_2_4_8_seconds_and_sooner_by_a_job_that_holds_pods():
    def waits(**more: object) -> list[float]:
        return [retry_at(rejection(times=count), world(**more)) - NOON for count in (1, 2, 3, 4, 5, 6, 7)]

    assert waits() == [2, 4, 8, 16, 32, 60, 60]
    held = world(*all_pods(job()))
    assert [retry_at(rejection(times=count), held) - NOON for count in (1, 2, 3, 4, 9)] == [2, 4, 8, 10, 10]
    assert retry_at(rejection("BeingDeleted", times=9), world()) == NOON + 1


def test_only_the_rejected_actions_wait_and_the_plan_is_made_again_when_the_first_is_due():
    create = [Create(Kind.POD, f"mnist-worker-{index}", {}) for index in range(2)]
    decided = Plan(job().status, tuple(create), wake_at=NOON + 100)
    rejected = world(rejections=(rejection(),))
    held = hold_back(decided, rejected, NOON + 1)
    assert held.actions == (create[1],)
    assert held.wake_at == NOON + 2
    assert hold_back(decided, rejected, NOON + 2) == decided, "it is due"
    other = Plan(job().status, (create[1], DeleteJob("ttl")), wake_at=None)
    assert hold_back(other, rejected, NOON + 1) == other
    job_rejected = world(rejections=(Rejection("DeleteJob", "Forbidden", "a policy keeps it", NOON),))
    assert hold_back(other, job_rejected, NOON + 1).actions == (create[1],)
