"""What plans see of API objects, above all of a pod's status as kubelets write it."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Role
from paddlejob.objects import transform
from paddlejob.objects.transform import UnreadableJob
from paddlejob.plan import Pod, PodPhase
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import document, job


def read(status: dict[str, Any], **metadata: Any) -> Pod:
    made = pod_manifest(job(), Role.WORKER, 1, 2, "build")
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z", **metadata}
    found = transform.pod({**made, "status": status}).value
    assert found is not None
    return found


def container(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "paddle", "state": state}]}


OLDER = {"reason": "CreateContainerConfigError", "message": 'configmap "mnist-env-uid-o-1" not found'}
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}

CASES = {
    "new": ({"phase": "Pending"}, {"phase": PodPhase.PENDING, "reason": ""}),
    "waits for another attempt's": (container(waiting=OLDER), {"phase": PodPhase.PENDING}),
    "runs": ({"phase": "Running", **container(running={})}, {"phase": PodPhase.RUNNING}),
    "done": (
        {"phase": "Succeeded", **container(terminated={"exitCode": 0, "reason": "Completed"})},
        {"phase": PodPhase.SUCCEEDED, "exit_code": 0},
    ),
    "done while a sidecar runs on": (
        {"phase": "Running", **container(terminated={"exitCode": 0})},
        {"phase": PodPhase.SUCCEEDED},
    ),
    "failed": (
        {"phase": "Failed", **container(terminated={"exitCode": 3, "reason": "Error", "message": "oh"})},
        {"phase": PodPhase.FAILED, "exit_code": 3, "message": "oh", "reason": ""},
    ),
    "out of memory": (
        {"phase": "Failed", **container(terminated={"exitCode": 137, "reason": "OOMKilled"})},
        {"phase": PodPhase.FAILED, "reason": "OOMKilled"},
    ),
    "evicted, after a checkpoint on the way out": (
        {
            "phase": "Failed",
            "reason": "Evicted",
            "conditions": [DISRUPTED | {"reason": "TerminationByKubelet"}],
            **container(terminated={"exitCode": 0, "reason": "Completed"}),
        },
        {"phase": PodPhase.FAILED, "disrupted": True, "reason": "Evicted"},
    ),
    "drained, after a checkpoint on the way out": (
        {
            "phase": "Succeeded",
            "conditions": [DISRUPTED | {"lastTransitionTime": "2027-01-15T08:00:05Z"}],
            **container(terminated={"exitCode": 0, "finishedAt": "2027-01-15T08:00:05Z"}),
        },
        {"phase": PodPhase.FAILED, "disrupted": True},
    ),
    "drained, after a checkpoint, by a node whose clock is behind": (
        {
            "phase": "Succeeded",
            "conditions": [DISRUPTED | {"lastTransitionTime": "2027-01-15T08:00:05Z"}],
            **container(terminated={"exitCode": 0, "finishedAt": "2027-01-15T08:00:02Z"}),
        },
        {"phase": PodPhase.FAILED, "disrupted": True},
    ),
    "ended by its own deadline, after a checkpoint": (
        {"phase": "Failed", "reason": "DeadlineExceeded", **container(terminated={"exitCode": 0})},
        {"phase": PodPhase.FAILED, "disrupted": False, "reason": "DeadlineExceeded"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pod_that(case: str):
    status, expected = CASES[case]
    seen = read(status)
    assert {field: getattr(seen, field) for field in expected} == expected


def test_labels_annotations_and_deletion():
    seen = read(
        {"podIP": "10.0.0.7"},
        deletionTimestamp="2027-01-15T08:00:30Z",
        annotations={"batch.paddlepaddle.org/wake": "1 1800000003.250", "batch.paddlepaddle.org/build": "b"},
    )
    assert (seen.role, seen.index, seen.attempt, seen.address) == (Role.WORKER, 1, 2, "10.0.0.7")
    assert (seen.deletion_due, seen.woken, seen.woken_at, seen.build) == (1800000030.0, 1, 1800000003.25, "b")


def injected(status: dict[str, Any], *, recorded: bool = True) -> Pod:
    """A pod whose only container of its own is `trainer`, with a proxy that a webhook put in front of it."""
    template = {"spec": {"containers": [{"name": "trainer", "image": "i"}]}}
    made = pod_manifest(job(worker_={"template": template}), Role.WORKER, 0, 1, "build")
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z"}
    made["spec"]["containers"].insert(0, {"name": "istio-proxy", "image": "proxy"})
    if not recorded:
        made["metadata"]["annotations"] = {"batch.paddlepaddle.org/build": "b"}
    found = transform.pod({**made, "status": status}).value
    assert found is not None
    return found


def test_a_container_injected_in_front_is_not_mistaken_for_the_trainer():
    proxy = {"name": "istio-proxy", "state": {"running": {}}}
    trainer = {"name": "trainer", "state": {"terminated": {"exitCode": 3, "message": "no data"}}}
    status = {"phase": "Running", "containerStatuses": [proxy, trainer]}
    seen = injected(status)
    assert (seen.phase, seen.exit_code, seen.message) == (PodPhase.FAILED, 3, "no data")
    assert injected(status, recorded=False).phase is PodPhase.RUNNING, "without the record, the template decides"


def test_a_wake_annotation_of_the_template_is_not_copied_and_not_believed():
    template = {
        "metadata": {"annotations": {"batch.paddlepaddle.org/wake": "now", "team": "vision"}},
        "spec": {"containers": [{"name": "paddle", "image": "i"}]},
    }
    made = pod_manifest(job(worker_={"template": template}), Role.WORKER, 0, 1, "build")
    assert "batch.paddlepaddle.org/wake" not in made["metadata"]["annotations"]
    assert made["metadata"]["annotations"]["team"] == "vision"
    for text in ("now", "1", "x y", "", "1 soon", "-1 2"):
        seen = read({"phase": "Running"}, annotations={"batch.paddlepaddle.org/wake": text})
        assert (seen.woken, seen.woken_at) == (0, 0.0), text


@pytest.mark.parametrize("label", ["role", "index"])
def test_a_pod_of_ours_that_lost_a_label_belongs_to_no_attempt(label: str):
    """It has the name that a replica needs, so the planner has to know of it to delete it."""
    made = pod_manifest(job(), Role.WORKER, 1, 2, "build")
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z"}
    del made["metadata"]["labels"][f"batch.paddlepaddle.org/{label}"]
    found = transform.pod({**made, "status": {"phase": "Running"}}).value
    assert found is not None
    assert (found.role, found.index, found.attempt) == (Role.WORKER, 1, 0)
    made["metadata"]["ownerReferences"] = []
    assert transform.pod(made).value is None, "not ours to delete"


@pytest.mark.parametrize(("label", "value"), [("role", "heter"), ("index", "0"), ("job", "another")])
def test_a_pod_of_ours_with_the_labels_of_another_replica_belongs_to_no_attempt(label: str, value: str):
    """It would hide the other one; and changes of it must reach the job that owns it, not the one of its label."""
    made = pod_manifest(job(), Role.WORKER, 1, 2, "build")
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z"}
    made["metadata"]["labels"][f"batch.paddlepaddle.org/{label}"] = value
    owned = transform.pod({**made, "status": {"phase": "Running"}})
    assert owned.job == "mnist"
    assert owned.value is not None
    assert (owned.value.role, owned.value.index, owned.value.attempt) == (Role.WORKER, 1, 0)


def test_a_pod_with_our_job_label_but_no_role_is_ignored():
    stray = {"metadata": {"name": "x", "namespace": "d", "uid": "u", "labels": {"batch.paddlepaddle.org/job": "mnist"}}}
    assert transform.pod(stray).value is None


@pytest.mark.parametrize("phase", ["Aborted", "Unknown", "Succeed"])
def test_a_job_with_the_status_of_another_operator_says_what_to_do(phase: str):
    made = document()
    made["metadata"]["uid"] = "u"
    found = transform.job({**made, "status": {"phase": phase}})
    assert isinstance(found, UnreadableJob)
    assert (found.namespace, found.name, found.uid) == ("default", "mnist", "u")
    assert f'status.phase is "{phase}"' in found.message
    assert "written by another operator; delete the job" in found.message


def test_a_job_without_replicas_says_which_field_to_correct():
    found = transform.job(document(worker_={"replicas": 0}))
    assert isinstance(found, UnreadableJob)
    assert "spec.worker.replicas is 0" in found.message
    assert "correct these fields" in found.message


@pytest.mark.parametrize("finished", ["08:00:02", "08:00:10"])
def test_a_program_whose_pod_is_deleted_has_not_succeeded_whatever_the_clock_of_its_node_says(finished: str):
    ended = container(terminated={"exitCode": 0, "finishedAt": f"2027-01-15T{finished}Z"})
    seen = read(
        {"phase": "Succeeded", **ended}, deletionTimestamp="2027-01-15T08:00:35Z", deletionGracePeriodSeconds=30
    )
    assert (seen.phase, seen.exit_code) == (PodPhase.FAILED, 0)
