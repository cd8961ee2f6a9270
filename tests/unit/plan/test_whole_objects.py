"""The objects of a job, each compared as a whole, so that nothing is missing and nothing is too much."""

from __future__ import annotations

from typing import Any

from paddlejob import contract
from paddlejob.api.types import Role
from paddlejob.plan.objects import environment, network
from paddlejob.plan.objects.pod import pod_manifest
from paddlejob.plan.objects.pod_group import pod_group_manifest
from tests.support.builders import IMAGE, job

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
        value("PADDLE_DISTRI_BACKEND", "gloo"),
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
    ours = (contract.ANNOTATION_WAKE, contract.ANNOTATION_REPLACEMENT, contract.ANNOTATION_RANK)
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
