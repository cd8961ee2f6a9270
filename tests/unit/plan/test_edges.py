"""Cases at the edge of a policy, each of which a small change would get wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import Phase, Role
from paddlejob.plan import Create, Delete, Kind, PodGroup, PodPhase, RecordEvent, Wake, names, plan, times
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


@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_the_pod_group_of_a_job_that_ended_goes_and_that_of_the_user_stays(policy: str):
    made = running(job(schedulingPolicy={}, cleanPodPolicy=policy))
    groups = (PodGroup(names.pod_group(made), "u-1", owned=True), PodGroup("mine", "u-2", owned=False))
    pods = all_pods(made, PodPhase.SUCCEEDED, exit_code=0)
    decided = plan(made, world(*pods, environments={1: "uid"}, pod_groups=groups), NOON)
    assert decided.status.phase is Phase.COMPLETED
    deleted = [one.uid for one in decided.actions if isinstance(one, Delete) and one.kind is Kind.POD_GROUP]
    assert deleted == ["u-1"]


@pytest.mark.parametrize(
    "about", [{"disrupted": True}, {"deletion_due": NOON + 30}, {"address": ""}, {"phase": PodPhase.PENDING}]
)
def test_training_does_not_begin_with_a_pod_that_is_about_to_go_or_not_there_yet(about: dict[str, Any]):
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    first, second = all_pods(made, PodPhase.WAITING)

    def published(*pods: Any) -> bool:
        decided = plan(made, world(*pods), NOON)
        return any(isinstance(one, Create) and one.kind is Kind.ENVIRONMENT for one in decided.actions)

    assert published(first, second)
    assert not published(first, replace(second, **about))


def test_while_a_job_trains_a_pod_that_cannot_start_is_named():
    made = running(job())
    first, second = all_pods(made)
    pulling = replace(second, phase=PodPhase.PENDING, reason="ErrImagePull", message="manifest unknown")
    status = plan(made, world(first, pulling, environments={1: "uid"}), NOON).status
    assert (status.phase, status.reason) == (Phase.RUNNING, "ImagePullFailed")
    waiting = replace(second, phase=PodPhase.WAITING)
    status = plan(made, world(first, waiting, environments={1: "uid"}), NOON).status
    assert (status.reason, status.message) == ("Starting", "1 of 2 pods are running")


@pytest.mark.parametrize("name", [contract.ENV_POD_IP, contract.ENV_PORT])
def test_a_variable_of_the_template_that_ours_refer_to_comes_before_them(name: str):
    """A kubelet expands $(NAME) only where NAME is defined earlier in the list."""
    made = job()
    given = [{"name": "MINE", "value": "1"}, {"name": name, "value": "7"}]
    made.spec.worker.template["spec"]["containers"][0]["env"] = given
    (container,) = pod_manifest(made, Role.WORKER, 0, 1, "build")["spec"]["containers"]
    listed = [one["name"] for one in container["env"]]
    assert listed[0] == name
    assert listed[-1] == "MINE"
    assert listed.count(name) == 1


@pytest.mark.parametrize(("address", "warned"), [("fd00::1", True), ("10.0.0.1", False)])
def test_addresses_that_paddle_may_not_parse_are_an_event(address: str, warned: bool):
    made = job(status={"phase": "Starting", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.WAITING, address=address)
    events = [one for one in plan(made, world(*pods), NOON).actions if isinstance(one, RecordEvent)]
    assert ("IPv6Addresses" in [one.reason for one in events]) is warned
    assert all(one.warning for one in events if one.reason == "IPv6Addresses")


def test_only_pods_that_wait_are_woken_when_a_lost_environment_is_published_again():
    published = {"phase": "Starting", "attempt": 1, "publishedAttempt": 1, "startTime": times.format(NOON - 5)}
    made = job(status=published)
    first, second = all_pods(made)
    decided = plan(made, world(first, replace(second, phase=PodPhase.WAITING)), NOON)
    assert [one.pod.name for one in decided.actions if isinstance(one, Wake)] == ["mnist-worker-1"]


def test_a_pod_that_has_a_node_is_not_unschedulable_whatever_was_said_about_it_before():
    made = job(status={"phase": "Pending", "attempt": 1, "startTime": times.format(NOON - 5)})
    pods = all_pods(made, PodPhase.PENDING, reason="Unschedulable", message="0/1 nodes are available")
    assert plan(made, world(*(replace(one, node="") for one in pods)), NOON).status.reason == "Unschedulable"
    message = plan(made, world(*pods), NOON).status.message
    assert "do not fit on any node" not in message


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], ["node.kubernetes.io/unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready"}], ["node.kubernetes.io/unreachable"]),
        (
            [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
        ),
        ([{"operator": "Exists"}], []),
        ([{"key": "", "operator": "Exists", "effect": "NoExecute"}], []),
    ],
)
def test_a_pod_leaves_a_lost_node_after_three_seconds_unless_the_template_decides(
    given: list[dict[str, str]], added: list[str]
):
    made = job()
    made.spec.worker.template["spec"]["tolerations"] = given
    lost = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    tolerations = pod_manifest(made, Role.WORKER, 0, 1, "build")["spec"]["tolerations"]
    assert tolerations == [*given, *({"key": key, **lost} for key in added)]


def test_avoided_nodes_are_added_to_what_the_template_prefers():
    made = job(status={"attempt": 2, "avoidedNodes": ["n1", "n2"]})
    mine = {"weight": 1, "preference": {"matchExpressions": []}}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    template = made.spec.worker.template["spec"]
    template["affinity"] = {"nodeAffinity": {preferred: [mine]}, "podAffinity": {"x": 1}}
    affinity = pod_manifest(made, Role.WORKER, 0, 2, "build")["spec"]["affinity"]
    name = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n1", "n2"]}
    avoid = {"weight": 100, "preference": {"matchExpressions": [name]}}
    assert affinity == {"nodeAffinity": {preferred: [mine, avoid]}, "podAffinity": {"x": 1}}
    assert template["affinity"]["nodeAffinity"] == {preferred: [mine]}, "the template stays as it is"


@pytest.mark.parametrize(("seen", "rebuilt"), [(0, True), (1, False)])
def test_pods_of_another_spec_are_rebuilt_if_it_is_not_known_which_generation_was_seen_last(seen: int, rebuilt: bool):
    made = running(job())
    known = {"observedGeneration": seen, "worker": made.status.role(Role.WORKER).model_copy(update={"replicas": 2})}
    made = made.model_copy(update={"status": made.status.model_copy(update=known)})
    decided = plan(made, world(*all_pods(made, build="of-an-older-spec/7"), environments={1: "uid"}), NOON)
    assert (decided.status.reason == "SpecChanged") is rebuilt
