"""Every field that plans read from an API object, and what it is where the object does not have it."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Role
from paddlejob.objects import transform
from paddlejob.objects.resources import attempt_of, job_of, owner_of
from paddlejob.plan import Pod, PodGroup, PodPhase
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import job

AT_EIGHT = 1_800_000_000.0
TERMINATED = {"exitCode": 3, "reason": "OOMKilled", "message": "too big", "finishedAt": "2027-01-15T08:01:00Z"}


def api_pod(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    made = pod_manifest(job(), Role.WORKER, 1, 2, "build")
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z", **metadata}
    return made if status is None else {**made, "status": status}


def seen(made: dict[str, Any]) -> Pod:
    found = transform.pod(made).value
    assert found is not None
    return found


def state(name: str = "paddle", **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


ENDED = state(terminated=TERMINATED)


def test_a_pod_with_everything():
    made = api_pod({"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [state(terminated=TERMINATED)]})
    made["spec"] |= {"nodeName": "node-3", "activeDeadlineSeconds": 1}
    found = seen(made)
    assert found == Pod(
        name="mnist-worker-1",
        uid="u",
        role=Role.WORKER,
        index=1,
        attempt=2,
        phase=PodPhase.FAILED,
        address="10.0.0.7",
        node="node-3",
        created=AT_EIGHT,
        deletion_due=None,
        exit_code=3,
        message="too big",
        reason="OOMKilled",
        disrupted=False,
        build="build",
        woken=0,
        woken_at=0.0,
        stopping=True,
        lingers=True,
        containers_ended=True,
    )


def test_a_pod_that_no_kubelet_has_seen_yet():
    found = seen(api_pod())
    assert (found.phase, found.address, found.node, found.reason, found.message) == (PodPhase.PENDING, "", "", "", "")
    assert (found.exit_code, found.disrupted, found.stopping, found.lingers) == (None, False, False, True)


def test_a_pod_belongs_to_the_job_of_its_label_and_owner():
    owned = transform.pod(api_pod())
    assert (owned.namespace, owned.job, owned.owner) == ("default", "mnist", "uid-of-mnist")


@pytest.mark.parametrize(("seconds", "stopping"), [(1, True), (2, False), (60, False)])
def test_only_a_deadline_of_one_second_stops_a_pod(seconds: int, stopping: bool):
    made = api_pod()
    made["spec"]["activeDeadlineSeconds"] = seconds
    assert seen(made).stopping is stopping


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ({"containerStatuses": [ENDED]}, False),
        (
            {
                "containerStatuses": [state(terminated=TERMINATED)],
                "initContainerStatuses": [state("proxy", running={})],
            },
            False,
        ),
        (
            {
                "containerStatuses": [state(running={})],
                "initContainerStatuses": [state("proxy", terminated=TERMINATED)],
            },
            False,
        ),
        (
            {
                "containerStatuses": [ENDED],
                "initContainerStatuses": [state("setup", waiting={}), state("proxy", terminated=TERMINATED)],
            },
            True,
        ),
    ],
)
def test_the_containers_of_a_pod_have_ended_when_its_sidecars_have_too(status: dict[str, Any], ended: bool):
    made = api_pod({"phase": "Running", **status})
    made["spec"]["initContainers"] = [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}]
    assert seen(made).containers_ended is ended


def test_a_debug_container_keeps_a_pod_alive():
    made = api_pod({"phase": "Running", "containerStatuses": [state(terminated=TERMINATED)]})
    assert seen(made).containers_ended
    made["spec"]["ephemeralContainers"] = [{"name": "debug"}]
    assert not seen(made).containers_ended


@pytest.mark.parametrize(("phase", "lingers"), [("Running", True), ("Failed", False), ("Succeeded", False)])
def test_a_pod_whose_containers_have_all_ended_does_not_linger(phase: str, lingers: bool):
    assert seen(api_pod({"phase": phase})).lingers is lingers


@pytest.mark.parametrize(
    ("labels", "is_replica"),
    [
        ({}, False),
        ({"batch.paddlepaddle.org/role": "worker"}, False),
        ({"batch.paddlepaddle.org/role": "driver", "batch.paddlepaddle.org/index": "0"}, False),
        ({"batch.paddlepaddle.org/role": "worker", "batch.paddlepaddle.org/index": "first"}, False),
        ({"batch.paddlepaddle.org/role": "heter", "batch.paddlepaddle.org/index": "0"}, True),
    ],
)
def test_a_replica_has_the_labels_of_one(labels: dict[str, str], is_replica: bool):
    assert (transform.pod(api_pod(labels=labels)).value is not None) is is_replica


@pytest.mark.parametrize(("text", "attempt"), [("7", 7), ("", 0), ("-1", 0), ("soon", 0)])
def test_an_attempt_that_is_no_number_counts_as_none(text: str, attempt: int):
    assert attempt_of({"metadata": {"labels": {"batch.paddlepaddle.org/attempt": text}}}) == attempt


def test_an_object_without_labels_belongs_to_no_job():
    assert job_of({"metadata": {}}) == "" == job_of({"metadata": {"labels": None}})
    assert attempt_of({"metadata": {}}) == 0


@pytest.mark.parametrize(
    ("change", "owner"),
    [
        ({}, "u"),
        ({"controller": False}, ""),
        ({"kind": "Job"}, ""),
        ({"apiVersion": "kubeflow.org/v1"}, ""),
        ({"apiVersion": "batch.paddlepaddle.org/v2"}, "u"),
    ],
)
def test_the_owner_is_the_paddlejob_that_controls_the_object(change: dict[str, Any], owner: str):
    reference = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "uid": "u", "controller": True}
    other = {"apiVersion": "v1", "kind": "Node", "uid": "n", "controller": True}
    assert owner_of({"metadata": {"ownerReferences": [other, reference | change]}}) == owner


def test_environments_and_services_carry_what_deletes_them():
    labels = {"batch.paddlepaddle.org/job": "mnist", "batch.paddlepaddle.org/attempt": "3"}
    made = {"metadata": {"name": "thing", "namespace": "ml", "uid": "u", "labels": labels}}
    assert transform.config_map(made).value == (3, "u")
    assert transform.service(made).value == ("thing", "u")
    assert transform.service(made).namespace == "ml"


@pytest.mark.parametrize(
    ("status", "phase", "message"),
    [
        (None, "", ""),
        ({"phase": "Pending"}, "Pending", ""),
        (
            {
                "phase": "Inqueue",
                "conditions": [
                    {"type": "Unschedulable", "message": "first"},
                    {"type": "Scheduled", "message": "no"},
                    {"type": "Unschedulable", "message": "newest"},
                    {"type": "Scheduled", "message": "no"},
                ],
            },
            "Inqueue",
            "newest",
        ),
    ],
)
def test_a_pod_group_says_why_it_waits_in_its_newest_condition(status: Any, phase: str, message: str):
    made = {"metadata": {"name": "g", "namespace": "ml", "uid": "u"}, "spec": {"minMember": 4}, "status": status}
    assert transform.pod_group(made).value == PodGroup("g", "u", False, phase, message, 4)


def test_a_pod_group_with_our_owner_reference_is_ours():
    reference = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "uid": "u", "controller": True}
    made = {"metadata": {"name": "g", "namespace": "ml", "uid": "u", "ownerReferences": [reference]}}
    assert transform.pod_group(made).value.owned


def test_an_init_container_that_failed_is_the_reason_of_the_pod():
    ended = {"terminated": {"exitCode": 4, "message": "no data"}}
    made = api_pod(
        {
            "phase": "Failed",
            "initContainerStatuses": [
                state("first", terminated={"exitCode": 0}),
                {"name": "second", "state": ended},
            ],
            "containerStatuses": [state(waiting={"reason": "PodInitializing"})],
        }
    )
    found = seen(made)
    assert (found.phase, found.exit_code, found.message, found.disrupted) == (PodPhase.FAILED, 4, "no data", False)


@pytest.mark.parametrize("reason", ["ContainerStatusUnknown", "Unknown"])
def test_a_container_that_did_not_survive_its_nodes_restart_was_disrupted(reason: str):
    found = seen(api_pod({"containerStatuses": [state(terminated={"exitCode": 137, "reason": reason})]}))
    assert (found.disrupted, found.phase) == (True, PodPhase.FAILED)


@pytest.mark.parametrize("reason", ["Completed", "Error"])
def test_a_reason_that_says_no_more_than_the_exit_code_is_left_out(reason: str):
    assert seen(api_pod({"containerStatuses": [state(terminated={"exitCode": 1, "reason": reason})]})).reason == ""


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("TerminationByKubelet", "Evicted"),
        ("EvictionByEvictionAPI", "Evicted"),
        ("PreemptionByScheduler", "Preempted"),
        ("DeletionByTaintManager", "NodeLost"),
        ("DeletionByPodGC", "NodeLost"),
        ("SomethingNew", "SomethingNew"),
        ("", "Evicted"),
    ],
)
def test_a_disruption_has_its_reason_and_the_pod_runs_on_until_it_ends(condition: str, reason: str):
    about = {"type": "DisruptionTarget", "status": "True", "reason": condition, "message": "why"}
    found = seen(api_pod({"phase": "Running", "conditions": [about], "containerStatuses": [state(running={})]}))
    assert (found.phase, found.disrupted, found.reason, found.message) == (PodPhase.RUNNING, True, reason, "why")


def test_a_condition_that_is_false_does_not_count():
    about = {"type": "DisruptionTarget", "status": "False", "reason": "DeletionByPodGC"}
    assert not seen(api_pod({"conditions": [about], "containerStatuses": [state(running={})]})).disrupted


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}, "Unschedulable"),
        ({"status": "False", "reason": "SchedulingGated", "message": "gated"}, "SchedulingGated"),
        ({"status": "True", "reason": "Unschedulable", "message": "earlier"}, ""),
    ],
)
def test_a_pod_without_a_node_says_why(condition: dict[str, str], reason: str):
    found = seen(api_pod({"phase": "Pending", "conditions": [{"type": "PodScheduled", **condition}]}))
    assert (found.phase, found.reason) == (PodPhase.PENDING, reason)
    assert found.message == (condition["message"] if reason else "")


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_what_every_pod_goes_through_is_no_reason(reason: str):
    found = seen(api_pod({"containerStatuses": [state(waiting={"reason": reason, "message": "m"})]}))
    assert (found.phase, found.reason, found.message) == (PodPhase.PENDING, "", "")


@pytest.mark.parametrize("reason", ["Evicted", "NodeLost", "Preempting"])
def test_a_pod_that_is_lost_counts_as_ended_whatever_its_container_did_last(reason: str):
    told = {"phase": "Running", "reason": reason, "message": "why", "containerStatuses": [state(running={})]}
    found = seen(api_pod(told))
    assert (found.phase, found.disrupted, found.reason, found.message) == (PodPhase.FAILED, True, reason, "why")


def test_an_init_container_that_still_ran_when_its_pod_failed_is_not_the_reason():
    made = api_pod({"phase": "Failed", "reason": "OutOfcpu", "initContainerStatuses": [state("first", running={})]})
    assert (seen(made).phase, seen(made).reason, seen(made).exit_code) == (PodPhase.FAILED, "OutOfcpu", None)
