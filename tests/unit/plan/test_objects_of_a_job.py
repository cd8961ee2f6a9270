"""The objects that a job gets, as schedulers, kubelets, kubectl and the garbage collector rely on them."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan import PodGroup, PodPhase, names, plan, times
from paddlejob.plan.objects import network
from paddlejob.plan.objects.environment import config_map
from paddlejob.plan.objects.metadata import worker_selector
from paddlejob.plan.objects.pod import LOST_NODE_SECONDS, overridden, pod_manifest
from paddlejob.plan.objects.pod_group import group_in_use, is_gang, min_member, pod_group_manifest
from tests.support.builders import NOON, all_pods, job, pod, template, world


def worker(made: PaddleJob, index: int = 0, **more: Any) -> dict[str, Any]:
    return pod_manifest(made, Role.WORKER, index, 1, "build", **more)


def with_template(
    container: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **pod: Any
) -> PaddleJob:
    made = template(**(container or {}))
    made["spec"] |= pod
    if metadata:
        made["metadata"] = metadata
    return job(worker_={"template": made})


def test_every_object_belongs_to_its_job_and_goes_with_it():
    made = job(intranet="Service", schedulingPolicy={})
    objects = [
        worker(made),
        network.service(made),
        config_map(made, 1, {"A": "1"}),
        pod_group_manifest(made),
    ]
    owner = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "name": "mnist",
        "uid": "uid-of-mnist",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for one in objects:
        assert one["metadata"]["ownerReferences"] == [owner]
        assert one["metadata"]["namespace"] == "default"
        assert one["metadata"]["labels"][contract.LABEL_JOB] == "mnist"
    assert [(one["apiVersion"], one["kind"]) for one in objects] == [
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "ConfigMap"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    ]


def test_pods_are_found_by_role_and_index_and_carry_their_attempt():
    made = job(ps=1, workers=3)
    labels = worker(made, 2)["metadata"]["labels"]
    assert labels[contract.LABEL_ROLE] == "worker"
    assert labels[contract.LABEL_INDEX] == "2"
    assert labels[contract.LABEL_ATTEMPT] == "1"
    chosen = dict(one.split("=") for one in worker_selector(made).split(","))
    assert chosen.items() <= labels.items()
    assert not chosen.items() <= pod_manifest(made, Role.PS, 0, 1, "build")["metadata"]["labels"].items()


def test_the_service_of_a_job_resolves_the_host_names_of_all_pods_before_they_are_ready():
    made = job(intranet="Service", ps=1)
    service, pods = network.service(made), [worker(made, 1), pod_manifest(made, Role.PS, 0, 1, "build")]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    for one in pods:
        assert service["spec"]["selector"].items() <= one["metadata"]["labels"].items()
        assert one["spec"]["subdomain"] == service["metadata"]["name"]
        assert one["spec"]["hostname"] == one["metadata"]["name"]
    assert service["spec"]["ports"] == [{"name": "paddle", "port": contract.PORT}]
    assert "subdomain" not in worker(job())["spec"]


def test_an_environment_never_changes_once_it_is_published():
    made = config_map(job(), 2, {"A": "1"})
    assert (made["immutable"], made["data"]) == (True, {"A": "1"})


@pytest.mark.parametrize(
    ("options", "gang"),
    [
        ({}, False),
        ({"schedulingPolicy": {}}, True),
        ({"worker_": {"template": {"spec": {**template()["spec"], "schedulerName": "volcano"}}}}, True),
        ({"worker_": {"template": {"spec": {**template()["spec"], "schedulerName": "other"}}}}, False),
    ],
)
def test_a_job_is_a_gang_by_its_policy_or_its_scheduler(options: dict[str, Any], gang: bool):
    assert is_gang(job(**options)) is gang


def test_a_pod_group_has_what_the_policy_says_and_waits_for_all_pods_otherwise():
    assert pod_group_manifest(job(ps=1, workers=3, schedulingPolicy={}))["spec"] == {"minMember": 4}
    policy = {"minAvailable": 2, "queue": "team", "priorityClass": "high", "minResources": {"cpu": "4"}}
    made = job(workers=3, schedulingPolicy=policy)
    assert pod_group_manifest(made)["spec"] == {
        "minMember": 2,
        "queue": "team",
        "priorityClassName": "high",
        "minResources": {"cpu": "4"},
    }
    assert min_member(made) == 2


def test_the_operators_own_group_is_used_before_one_of_the_user():
    made = job(schedulingPolicy={})
    own = PodGroup(names.pod_group(made), "u", owned=True)
    users = PodGroup("mnist", "v", owned=False)
    foreign = PodGroup(names.pod_group(made), "w", owned=False)
    assert group_in_use(made, (users, own)) == own
    assert group_in_use(made, (users,)) == users
    if names.pod_group(made) != "mnist":
        assert group_in_use(made, (foreign,)) is None
    assert group_in_use(job(), (own, users)) is None


def test_a_pod_of_a_gang_goes_to_the_scheduler_of_its_group():
    made = worker(job(schedulingPolicy={}), group="mnist")
    assert made["spec"]["schedulerName"] == "volcano"
    assert made["metadata"]["annotations"][contract.ANNOTATION_VOLCANO_GROUP] == "mnist"
    assert "schedulerName" not in worker(job())["spec"]


def test_a_pod_never_restarts_by_itself_and_has_no_token_unless_it_names_an_account():
    made = with_template({"restartPolicy": "Always", "restartPolicyRules": []})
    spec = worker(made)["spec"]
    assert spec["restartPolicy"] == "Never"
    assert not {"restartPolicy", "restartPolicyRules"} & spec["containers"][0].keys()
    assert spec["automountServiceAccountToken"] is False
    assert "automountServiceAccountToken" not in worker(with_template(serviceAccountName="robot"))["spec"]
    assert "automountServiceAccountToken" not in worker(with_template(serviceAccount="robot"))["spec"]


def test_a_program_is_not_process_1_unless_its_image_or_template_wants_that():
    def shared(container: dict[str, Any], **pod: Any) -> object:
        return worker(with_template(container, **pod))["spec"].get("shareProcessNamespace")

    program = {"command": ["python", "train.py"]}
    assert shared(program) is True
    assert shared(program, shareProcessNamespace=False) is False
    assert shared(program, hostPID=True) is None, "Kubernetes rejects both"
    assert shared({}) is None, "the entry point of the image may be an init system"
    two = [{"name": "paddle", "image": "i", **program}, {"name": "exporter", "image": "i", **program}]
    assert shared(program, containers=two) is None, "they would see each other's environment"


def test_what_a_template_says_about_our_own_marks_is_not_taken():
    given = {
        "labels": {"team": "a", contract.LABEL_INDEX: "9"},
        "annotations": {"note": "b", contract.ANNOTATION_WAKE: "now", contract.ANNOTATION_REPLACEMENT: "7"},
    }
    about = worker(with_template(metadata=given))["metadata"]
    assert (about["labels"]["team"], about["labels"][contract.LABEL_INDEX]) == ("a", "0")
    assert about["annotations"]["note"] == "b"
    assert about["annotations"][contract.ANNOTATION_BUILD] == "build"
    assert not {contract.ANNOTATION_WAKE, contract.ANNOTATION_REPLACEMENT} & about["annotations"].keys()
    replaced = worker(job(), replacement=2)["metadata"]["annotations"]
    assert replaced[contract.ANNOTATION_REPLACEMENT] == "2"
    assert replaced[contract.ANNOTATION_TRAINING_CONTAINER] == "paddle"


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], 2),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], 1),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], 2),
        ([{"key": "node.kubernetes.io/unreachable"}], 1),
        ([{"operator": "Exists"}], 0),
        ([{"key": "dedicated", "effect": "NoExecute"}], 2),
    ],
)
def test_a_lost_node_is_tolerated_for_seconds_unless_the_template_says_otherwise(given: list[Any], added: int):
    found = worker(with_template(tolerations=given))["spec"]["tolerations"]
    assert found[: len(given)] == given
    ours = found[len(given) :]
    assert len(ours) == added
    assert all(one["tolerationSeconds"] == LOST_NODE_SECONDS and one["effect"] == "NoExecute" for one in ours)


def test_pods_on_the_host_network_have_ports_of_their_own_and_a_node_of_their_own():
    made = job(workers=3, intranet="Host")
    pods = [worker(made, index) for index in range(3)]
    blocks = [[one["hostPort"] for one in pod["spec"]["containers"][0]["ports"]] for pod in pods]
    assert [len(block) for block in blocks] == [contract.PORTS_PER_POD] * 3
    assert len({port for block in blocks for port in block}) == 3 * contract.PORTS_PER_POD
    assert all(contract.HOST_PORT_FIRST <= port <= contract.HOST_PORT_LAST for block in blocks for port in block)
    for made_pod in pods:
        assert made_pod["spec"]["hostNetwork"] is True
        assert made_pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
        assert all(one["containerPort"] == one["hostPort"] for one in made_pod["spec"]["containers"][0]["ports"])
        (term,) = made_pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"]["matchLabels"].items() <= made_pod["metadata"]["labels"].items()
    assert "affinity" not in worker(job(ps=1, workers=2, intranet="Host"))["spec"], "servers find each other by port"
    own = {"nodeAffinity": {}}
    chosen = template()
    chosen["spec"]["affinity"] = own
    assert worker(job(intranet="Host", worker_={"template": chosen}))["spec"]["affinity"] == own
    assert "hostNetwork" not in worker(job())["spec"]


def test_the_port_of_the_pod_network_may_be_given_and_is_the_same_for_all():
    made = job()
    assert network.port(made, Role.WORKER, 1, 1) == contract.PORT
    made.metadata.annotations[contract.ANNOTATION_PORT] = "7000"
    assert {network.port(made, Role.WORKER, index, 1) for index in range(3)} == {7000}
    made.metadata.annotations[contract.ANNOTATION_PORT] = "http"
    assert network.port(made, Role.WORKER, 1, 1) == contract.PORT


def test_hosts_and_endpoints():
    assert network.host(job(), Role.WORKER, 0, "10.0.0.1") == "10.0.0.1"
    assert network.host(job(intranet="Service"), Role.WORKER, 0, "10.0.0.1") == "mnist-worker-0.mnist-peers.default.svc"
    assert network.endpoint("10.0.0.1", 7) == "10.0.0.1:7"
    assert network.endpoint("fd00::1", 7) == "[fd00::1]:7"


def test_variables_that_a_template_overrides_are_named():
    given = [{"name": name, "value": "1"} for name in ("PADDLE_TRAINER_ID", "MINE", contract.ENV_UNBUFFERED)]
    assert overridden(with_template({"env": given}), Role.WORKER) == ["PADDLE_TRAINER_ID"]


def waiting(*messages: str, **more: Any) -> Any:
    made = job(workers=3, status={"phase": "Pending", "attempt": 1, "startTime": times.format(NOON - 5)}, **more)
    pods = [
        pod(made, "worker", index, PodPhase.PENDING, reason="Unschedulable", message=message, node="", address="")
        for index, message in enumerate(messages)
    ]
    return made, pods


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
