"""What plans see of a pod that waits or was ended from outside."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import Role
from paddlejob.objects.container_status import training_container_of
from paddlejob.plan import PodPhase, names
from paddlejob.plan.manifests.pod import pod_manifest
from tests.support.builders import job
from tests.unit.objects.test_startup import read


def container(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "paddle", "state": state}]}


def test_only_the_environment_of_its_own_attempt_makes_a_pod_ready_to_start():
    own = f'configmap "{names.environment(job(), 2)}" not found'

    def seen(reason: str, message: str) -> tuple[PodPhase, str]:
        pod = read(container(waiting={"reason": reason, "message": message}))
        return pod.phase, pod.reason

    assert seen("CreateContainerConfigError", own) == (PodPhase.WAITING, "")
    assert seen("CreateContainerConfigError", 'configmap "mine" not found')[0] is PodPhase.PENDING
    assert seen("RunContainerError", own) == (PodPhase.PENDING, "RunContainerError")


def test_a_kubelet_that_could_not_read_config_maps_in_time_says_nothing_about_the_environment():
    message = "failed to sync configmap cache: timed out waiting for the condition"
    pod = read(container(waiting={"reason": "CreateContainerConfigError", "message": message}))
    assert (pod.phase, pod.reason, pod.unsure) == (PodPhase.PENDING, "", True)
    assert not read(container(waiting={"reason": "CreateContainerConfigError", "message": "other"})).unsure


def test_what_keeps_an_init_container_waiting_keeps_the_pod_waiting():
    waiting = container(waiting={"reason": "PodInitializing"})
    image = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    pod = read({**waiting, "initContainerStatuses": [{"name": "i0", "state": image}]})
    assert (pod.phase, pod.reason, pod.message) == (PodPhase.PENDING, "ImagePullBackOff", "no such image")
    pod = read({**waiting, "initContainerStatuses": [{"name": "i0", "state": {"running": {}}}]})
    assert (pod.phase, pod.reason) == (PodPhase.PENDING, "")


@pytest.mark.parametrize(
    ("status", "reason", "disrupted"),
    [
        ({"phase": "Failed", "reason": "OutOfcpu", "message": "no cpu"}, "OutOfcpu", True),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, "DeadlineExceeded", False),
        ({"phase": "Failed"}, "", False),
    ],
)
def test_a_pod_that_never_ran_was_rejected_unless_it_was_stopped(status: dict[str, Any], reason: str, disrupted: bool):
    pod = read(status)
    assert (pod.phase, pod.reason, pod.disrupted) == (PodPhase.FAILED, reason, disrupted)
    assert pod.message == status.get("message", "")


@pytest.mark.parametrize(
    ("seconds", "phase"), [(1, PodPhase.SUCCEEDED), (3600, PodPhase.FAILED)], ids=["the operator", "its template"]
)
def test_exit_status_0_of_a_pod_that_a_deadline_ended_is_a_success_only_if_it_is_of(seconds: int, phase: PodPhase):
    """The operator stops a pod after its success is on record; a deadline may have ended training itself."""
    ended = {"phase": "Failed", "reason": "DeadlineExceeded", **container(terminated={"exitCode": 0})}
    assert read(ended, activeDeadlineSeconds=seconds).phase is phase


def test_a_pod_that_was_evicted_for_what_it_used_itself_has_failed():
    status = {"phase": "Failed", "reason": "Evicted"}
    own = 'Container paddle exceeded its local ephemeral storage limit "1Gi". '
    pod = read({**status, "message": own})
    assert (pod.phase, pod.reason, pod.message, pod.disrupted) == (PodPhase.FAILED, "Evicted", own, False)
    assert read({**status, "message": "The node was low on resource: memory."}).disrupted


def test_the_message_of_an_evicted_pod_is_its_own_else_that_of_the_condition():
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": "condition"}
    status = {"phase": "Failed", "conditions": [condition]}
    assert read({**status, "message": "low on memory"}).message == "low on memory"
    assert read(status).message == "condition"
    assert read(status).disrupted


def test_the_training_container_of_a_pod_without_annotations_is_that_of_its_template():
    pod = pod_manifest(job(), Role.WORKER, 0, 1, "build")
    pod["spec"]["containers"].insert(0, {"name": "istio-proxy"})
    assert training_container_of(pod) == "paddle"
    pod["metadata"]["annotations"][contract.ANNOTATION_TRAINING_CONTAINER] = "istio-proxy"
    assert training_container_of(pod) == "istio-proxy"
    pod["metadata"]["annotations"][contract.ANNOTATION_TRAINING_CONTAINER] = "gone"
    assert training_container_of(pod) == "paddle"
    del pod["metadata"]["annotations"]
    assert training_container_of(pod) == "paddle"


@pytest.mark.parametrize(
    ("printed", "quoted"),
    [
        ("Container failed\nenv {'TOKEN': 'hunter2'}\nthe end", "Container failed\nenv {...}\nthe end"),
        ("environ({'TOKEN': 'hunter2'})\nthe end", "env {...}\nthe end"),
        ("ter2', 'PORT': '1', 'A': '{'}\nthe end", "env {...}\nthe end"),
        ("hunter2'}\nthe end", "env {...}\nthe end"),
        ("{\"a\": 1}', 'TOKEN': \"hunter'2\"}\nthe end", "env {...}\nthe end"),
        ("failed: {'path': '/x', 'code': '1'}", "failed: {'path': '/x', 'code': '1'}"),
        ("{'A': 'x', 'B': 'y'}", "{'A': 'x', 'B': 'y'}"),
        ("the end\nof 'x'}", "the end\nof 'x'}"),
    ],
)
@pytest.mark.parametrize("kind", ["containerStatuses", "initContainerStatuses"])
def test_the_environment_that_a_launcher_printed_is_not_quoted(printed: str, quoted: str, kind: str):
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": printed}}
    statuses = {"phase": "Failed", **container(waiting={"reason": "PodInitializing"})}
    assert read({**statuses, kind: [{"name": "paddle", "state": ended}]}).message == quoted
