"""What a job's status says about a rejected action, and when it is tried again."""

from __future__ import annotations

import pytest

from paddlejob.plan import Create, DeleteJob, Kind, Plan, PodPhase, names, plan, times
from paddlejob.plan.diagnosis.rejections import describe, hold_back, newest, retry_at
from paddlejob.plan.world import Rejection
from tests.support.builders import NOON, all_pods, job, running, world


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
        (rejection(message="denied by policy"), "AdmissionRefused", "change the job accordingly"),
    ],
)
def test_each_kind_of_rejection_has_a_reason_and_a_remedy_and_quotes_the_server(
    rejected: Rejection, reason: str, remedy: str
):
    said, message = describe(rejected)
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


def test_the_newest_rejection_is_the_one_reported():
    older, newer = rejection(), Rejection("mnist-worker-1", "Forbidden", "later", NOON + 1)
    assert newest([newer, older]) == newest([older, newer]) == newer
    assert newest([]) is None


def test_a_pod_that_cannot_start_is_named_with_what_is_missing():
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.PENDING, reason="CreateContainerConfigError", message='secret "token" not found')
    status = plan(made, world(*pods), NOON).status
    assert 'secret "token" not found' in status.message
    assert "create what is missing or correct the template" in status.message
    assert status.reason == "CreateContainerConfigError"


def test_a_pod_that_only_waits_for_the_environment_of_its_job_is_not_stuck():
    made = running(job())
    missing = f'configmap "{names.environment(made, 1)}" not found'
    pods = all_pods(made, PodPhase.PENDING, reason="CreateContainerConfigError", message=missing)
    status = plan(made, world(*pods), NOON).status
    assert status.reason != "CreateContainerConfigError"
