"""The objects that a job gets, as schedulers, kubelets, kubectl and the garbage collector rely on them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan import Create, Kind, PodGroup, PodPhase, World, names, plan
from paddlejob.plan.manifests import environment, network
from paddlejob.plan.manifests.metadata import worker_selector
from paddlejob.plan.manifests.pod import overridden, pod_manifest
from paddlejob.plan.manifests.pod_group import group_in_use, is_gang, pod_group_manifest
from tests.support.builders import IMAGE, NOON, all_pods, job, running, template, world


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
    assert [one["spec"]["hostname"] for one in pods] == ["worker-1-uid-o-1", "ps-0-uid-o-1"]
    assert service["spec"]["ports"] == [{"name": "paddle", "port": contract.PORT}]
    assert "subdomain" not in worker(job())["spec"]


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
    first = {"name": "fetch", "image": "i"}
    assert shared(program, initContainers=[first]) is True, "it has ended by then"
    assert shared(program, initContainers=[{**first, "restartPolicy": "Always"}]) is None, "a sidecar runs beside it"


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
    assert network.host(job(), Role.WORKER, 0, 1, "10.0.0.1") == "10.0.0.1"
    assert (
        network.host(job(intranet="Service"), Role.WORKER, 0, 1, "10.0.0.1")
        == "worker-0-uid-o-1.mnist-peers.default.svc"
    )
    assert network.endpoint("10.0.0.1", 7) == "10.0.0.1:7"
    assert network.endpoint("fd00::1", 7) == "[fd00::1]:7"


def test_variables_that_a_template_overrides_are_named():
    given = [{"name": name, "value": "1"} for name in ("PADDLE_TRAINER_ID", "MINE", contract.ENV_UNBUFFERED)]
    assert overridden(with_template({"env": given}), Role.WORKER) == ["PADDLE_TRAINER_ID"]


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


OWNER = {
    "apiVersion": contract.API_VERSION,
    "kind": contract.KIND,
    "name": "mnist",
    "uid": "uid-of-mnist",
    "controller": True,
    "blockOwnerDeletion": True,
}


def about(name: str, **labels: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "default",
        "labels": {contract.LABEL_JOB: "mnist", **labels},
        "ownerReferences": [OWNER],
    }


def value(name: str, text: str) -> dict[str, str]:
    return {"name": name, "value": text}


def test_a_service():
    assert network.service(job(intranet="Service")) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": about("mnist-peers"),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {contract.LABEL_JOB: "mnist"},
            "ports": [{"name": "paddle", "port": 2379}],
        },
    }


def test_an_environment():
    assert environment.config_map(job(), 3, {"A": "1"}) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": about("mnist-env-uid-o-3", **{contract.LABEL_ATTEMPT: "3"}),
        "immutable": True,
        "data": {"A": "1"},
    }


def test_a_pod_group():
    policy = {"minAvailable": 3, "queue": "research", "priorityClass": "high", "minResources": {"cpu": "4"}}
    assert pod_group_manifest(job(workers=4, schedulingPolicy=policy)) == {
        "apiVersion": contract.VOLCANO_API,
        "kind": "PodGroup",
        "metadata": about("mnist-uid-o"),
        "spec": {"minMember": 3, "queue": "research", "priorityClassName": "high", "minResources": {"cpu": "4"}},
    }
    assert pod_group_manifest(job(workers=4, schedulingPolicy={}))["spec"] == {"minMember": 4}


def test_the_pod_of_a_worker():
    made = pod_manifest(job(), Role.WORKER, 1, 2, "build", replacement=3)
    (container,) = made["spec"].pop("containers")
    lost = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    assert made == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **about(
                "mnist-worker-1",
                **{contract.LABEL_ROLE: "worker", contract.LABEL_INDEX: "1", contract.LABEL_ATTEMPT: "2"},
            ),
            "annotations": {
                contract.ANNOTATION_BUILD: "build",
                contract.ANNOTATION_REPLACEMENT: "3",
                contract.ANNOTATION_TRAINING_CONTAINER: "paddle",
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "tolerations": [{"key": f"node.kubernetes.io/{taint}", **lost} for taint in ("not-ready", "unreachable")],
        },
    }
    environ = container.pop("env")
    assert container == {
        "name": "paddle",
        "image": IMAGE,
        "envFrom": [{"configMapRef": {"name": "mnist-env-uid-o-2"}}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    assert environ == [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        value("PADDLE_PORT", "2379"),
        value("PADDLE_TRAINER_ID", "1"),
        value("TRAINING_ROLE", "TRAINER"),
        value("PADDLE_TRAINING_ROLE", "TRAINER"),
        value(
            "PADDLE_CURRENT_ENDPOINT",
            f"$({contract.ENV_HOST_OPEN})$(POD_IP)$({contract.ENV_HOST_CLOSE}):$(PADDLE_PORT)",
        ),
        value("RANK", "1"),
        value("POD_INDEX", "1"),
    ]


def test_a_pod_on_the_host_network_declares_its_ports_and_has_its_node_alone():
    spec = pod_manifest(job(intranet="Host"), Role.WORKER, 1, 1, "build")["spec"]
    ports = [one["containerPort"] for one in spec["containers"][0]["ports"]]
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert ports == list(range(ports[0], ports[0] + contract.PORTS_PER_POD))
    assert [one["hostPort"] for one in spec["containers"][0]["ports"]] == ports
    selector = {"matchLabels": {contract.LABEL_JOB: "mnist", contract.LABEL_ROLE: "worker"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert spec["affinity"] == {"podAntiAffinity": {required: [term]}}
    with_servers = pod_manifest(job(intranet="Host", ps=1), Role.WORKER, 1, 1, "build")["spec"]
    assert "affinity" not in with_servers


def test_what_the_template_sets_for_the_engine_alone_is_not_taken_over():
    made = job()
    template = made.spec.worker.template  # type: ignore[union-attr]
    ours = (contract.ANNOTATION_WAKE, contract.ANNOTATION_REPLACEMENT)
    template["metadata"] = {"annotations": dict.fromkeys(ours, "1") | {"mine": "1"}, "labels": {"team": "a"}}
    template["spec"]["containers"][0] |= {"restartPolicy": "Always", "restartPolicyRules": []}
    template["spec"]["serviceAccountName"] = "trainer"
    pod = pod_manifest(made, Role.WORKER, 0, 1, "build")
    assert set(pod["metadata"]["annotations"]) == {
        "mine", contract.ANNOTATION_BUILD, contract.ANNOTATION_TRAINING_CONTAINER,
    }  # fmt: skip
    assert pod["metadata"]["labels"]["team"] == "a"
    assert not {"restartPolicy", "restartPolicyRules"} & pod["spec"]["containers"][0].keys()
    assert "automountServiceAccountToken" not in pod["spec"]


def test_a_worker_that_joins_others_knows_them_and_keeps_their_parameters():
    made = job(ps=1, workers=3, elastic=1, withGloo=0)
    peers = {(Role.PS, 0): "10.0.0.1", (Role.WORKER, 1): "10.0.1.2"}
    joined = environment.of_joining(made, 0, 1, peers)
    assert joined == [
        value(contract.ENV_JOINS, "1"),
        value("PADDLE_TRAINERS_NUM", "3"),
        value("PADDLE_TRAINERS", "$(POD_IP),10.0.1.2,0.0.0.0"),
        value("PADDLE_TRAINER_ENDPOINTS", "$(POD_IP):2379,10.0.1.2:2379,0.0.0.0:2379"),
        value(contract.KEEP_PARAMETERS, "1"),
    ]
    assert contract.KEEP_PARAMETERS not in [one["name"] for one in environment.of_joining(made, 2, 1, peers)]


def test_planning_six_thousand_workers_takes_little_memory():
    made = job(workers=6000)
    tracemalloc.start()
    decided = plan(made, World(), NOON)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(decided.actions) == 6000
    assert peak < 10 * 2**20, "with their manifests it was 33 MiB, and more with larger templates"


def test_each_manifest_is_built_anew_so_that_none_can_change_another():
    create = plan(job(), World(), NOON).actions[0]
    assert isinstance(create, Create)
    create.manifest["spec"]["nodeName"] = "node-1"
    assert "nodeName" not in create.manifest["spec"]
