"""What plans see of a pod that has not started yet, as schedulers and kubelets write it."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.types import Role
from paddlejob.objects import transform
from paddlejob.plan import Pod, PodPhase
from paddlejob.plan.manifests.pod import pod_manifest
from paddlejob.plan.times import parse
from tests.support.builders import job

EIGHT = "2027-01-15T08:00:00Z"
LATER = "2027-01-15T08:07:00Z"


def read(status: dict[str, Any], **spec: Any) -> Pod:
    made = pod_manifest(job(), Role.WORKER, 1, 2, "build", replacement=2)
    made["metadata"] |= {"uid": "u", "creationTimestamp": EIGHT}
    made["spec"] |= spec
    found = transform.pod({**made, "status": status}).value
    assert found is not None
    return found


def scheduled(status: str, **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": status, "lastTransitionTime": LATER}], **more}


def init(*states: dict[str, Any]) -> dict[str, Any]:
    return {"initContainerStatuses": [{"name": f"i{number}", "state": state} for number, state in enumerate(states)]}


def test_the_number_of_pods_it_replaces_is_read_back():
    assert read({}).replacement == 2


@pytest.mark.parametrize("status", ["True", "False"])
def test_the_time_of_the_schedulers_last_decision_is_read(status: str):
    assert read(scheduled(status)).scheduling_since == parse(LATER)
    assert read({}).scheduling_since == 0.0


def test_a_pod_for_which_others_are_preempted_is_nominated_until_it_has_a_node():
    assert read(scheduled("False", nominatedNodeName="node-1")).nominated
    assert not read(scheduled("True", nominatedNodeName="node-1"), nodeName="node-1").nominated
    assert not read(scheduled("False")).nominated


@pytest.mark.parametrize("hour", ["04", "08", "20"], ids=["slow", "right", "fast"])
def test_the_time_of_init_containers_is_that_of_their_node_and_no_other_clock(hour: str):
    ran = {"exitCode": 0, "startedAt": f"2027-01-15T{hour}:08:00Z", "finishedAt": f"2027-01-15T{hour}:38:00Z"}
    seen = read({**scheduled("True"), **init({"terminated": ran}, {"running": {}})})
    assert (seen.initializing, seen.init_ended, seen.init_failed) == (True, parse(LATER) + 30 * 60, False)
    assert not read(init({"waiting": {"reason": "ImagePullBackOff"}})).initializing


@pytest.mark.parametrize("times", [{}, {"startedAt": None, "finishedAt": LATER}, {"startedAt": LATER}])
def test_one_whose_times_are_not_known_has_taken_none(times: dict[str, Any]):
    assert read({**scheduled("True"), **init({"terminated": {"exitCode": 0, **times}})}).init_ended == parse(LATER)


def test_a_pod_is_initialized_when_all_its_init_containers_have_succeeded():
    done = {"terminated": {"exitCode": 0, "finishedAt": LATER}}
    assert read(init(done, done)).initialized
    assert not read(init(done, {"waiting": {"reason": "PodInitializing"}})).initialized
    assert not read(init(done, {"terminated": {"exitCode": 1, "finishedAt": LATER}})).initialized
    assert not read({}).initialized, "one without init containers reports by itself what is missing"
    sidecar = {"name": "i1", "image": "x", "restartPolicy": "Always"}
    assert read(init(done, {"running": {}}), initContainers=[{"name": "i0"}, sidecar]).initialized


def test_a_sidecar_that_runs_says_nothing_about_the_startup():
    sidecar = {"name": "i0", "image": "x", "restartPolicy": "Always"}
    assert not read(init({"running": {}}), initContainers=[sidecar]).initializing


def test_an_init_container_that_failed_is_distinguished_from_the_program():
    failed = {"terminated": {"exitCode": 4, "finishedAt": LATER, "message": "no route to host"}}
    seen = read({"phase": "Failed", **init(failed)})
    assert (seen.phase, seen.init_failed, seen.exit_code) == (PodPhase.FAILED, True, 4)


def test_the_image_of_an_init_container_that_cannot_be_pulled_is_reported():
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:v1"'}}
    training = {"containerStatuses": [{"name": "paddle", "state": {"waiting": {"reason": "PodInitializing"}}}]}
    seen = read({"phase": "Pending", **init({"terminated": {"exitCode": 0}}, waits), **training})
    assert (seen.phase, seen.reason, seen.message) == (
        PodPhase.PENDING,
        "ImagePullBackOff",
        'Back-off pulling image "nope:v1"',
    )
