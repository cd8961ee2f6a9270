"""Why a job does not run yet, as its pods tell it: which of them is quoted, and when that is news."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import PodGroup, PodPhase, RecordEvent, names, plan, times
from tests.support.builders import NOON, all_pods, job, pod, running, world


def test_a_message_without_a_reason_is_not_taken_for_one():
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.PENDING, message="pulling image")
    status = plan(made, world(*pods), NOON).status
    assert "create what is missing" not in status.message
    assert status.reason


def test_while_a_job_trains_a_pod_that_cannot_start_is_named():
    made = running(job())
    first, second = all_pods(made)
    pulling = replace(second, phase=PodPhase.PENDING, reason="ErrImagePull", message="manifest unknown")
    status = plan(made, world(first, pulling, environments={1: "uid"}), NOON).status
    assert (status.phase, status.reason) == (Phase.RUNNING, "ImagePullFailed")
    waiting = replace(second, phase=PodPhase.WAITING)
    status = plan(made, world(first, waiting, environments={1: "uid"}), NOON).status
    assert (status.reason, status.message) == ("Starting", "1 of 2 pods are running")


def test_a_pod_that_has_a_node_is_not_unschedulable_whatever_was_said_about_it_before():
    made = job(status={"phase": "Pending", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.PENDING, reason="Unschedulable", message="0/1 nodes are available")
    assert plan(made, world(*(replace(one, node="") for one in pods)), NOON).status.reason == "Unschedulable"
    message = plan(made, world(*pods), NOON).status.message
    assert "do not fit on any node" not in message


STARTING = {"phase": "Pending", "reason": "PodsNotReady", "attempt": 1, "startTime": times.format(NOON - 5)}


def test_a_job_that_waits_says_how_many_of_its_pods_are_not_ready_and_looks_again_when_one_is_overdue():
    made = job(workers=3, status=STARTING, startupDeadlineSeconds=100)
    first, *others = all_pods(made, PodPhase.PENDING, scheduling_since=NOON - 20)
    decided = plan(made, world(replace(first, phase=PodPhase.WAITING), *others), NOON)
    assert decided.status.message.startswith("2 of 3 pods are not ready to start")
    assert decided.wake_at == NOON + 80


@pytest.mark.parametrize(
    ("before", "recorded"), [("PodsNotReady", True), ("Unschedulable", False)], ids=["new", "as before"]
)
def test_a_new_reason_why_a_job_does_not_run_is_one_event(before: str, recorded: bool):
    made = job(status={**STARTING, "reason": before})
    pods = all_pods(
        made, PodPhase.PENDING, node="", address="", reason="Unschedulable", message="no node is large enough"
    )
    events = [one for one in plan(made, world(*pods), NOON).actions if isinstance(one, RecordEvent)]
    assert [(one.reason, one.warning) for one in events] == [("Unschedulable", True)] * recorded


def test_the_pod_that_tells_most_is_quoted_where_pods_fit_on_no_node():
    made, pods = waiting("pod has unbound claims", "0/3 nodes are available: 3 Insufficient cpu", "other")
    status = plan(made, world(*pods), NOON).status
    assert status.reason == "Unschedulable"
    assert status.message.startswith("3 of 3 pods do not fit on any node")
    assert status.message.endswith("3 Insufficient cpu (mnist-worker-1)")


def test_a_claim_that_does_not_exist_is_named():
    made, pods = waiting(*['persistentvolumeclaim "set" not found'] * 3)
    status = plan(made, world(*pods), NOON).status
    assert status.reason == "VolumeMissing"
    assert "claim set does not exist in namespace default" in status.message


@pytest.mark.parametrize("phase", ["Pending", "Inqueue", ""])
def test_a_group_that_is_not_admitted_is_the_reason_before_its_pods(phase: str):
    made, pods = waiting("a", "b", "c", schedulingPolicy={})
    group = PodGroup(names.pod_group(made), "u", owned=True, phase=phase, members=3)
    status = plan(made, world(*pods, pod_groups=(group,)), NOON).status
    assert status.reason == "GangNotAdmitted"
    assert f"pod group {group.name} is not admitted" in status.message
    assert status.message.endswith(": a")


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_cannot_be_pulled_is_named(reason: str):
    made = job(status={"phase": "Pending", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.PENDING, reason=reason, message="manifest unknown")
    status = plan(made, world(*pods), NOON).status
    assert status.reason == "ImagePullFailed"
    assert "the image of mnist-worker-0 cannot be pulled; check its name" in status.message


def waiting(*messages: str, **more: Any) -> Any:
    made = job(workers=3, status={"phase": "Pending", "attempt": 1, "startTime": times.format(NOON - 5)}, **more)
    pods = [
        pod(made, "worker", index, PodPhase.PENDING, reason="Unschedulable", message=message, node="", address="")
        for index, message in enumerate(messages)
    ]
    return made, pods


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
