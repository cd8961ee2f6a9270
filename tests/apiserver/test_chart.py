"""The Helm chart and the kustomization produce exactly the objects of deploy/v1."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.operator.manifests import manifests
from testbed.build.binaries import binaries
from tools.monitoring.alerts import rules
from tools.monitoring.dashboard import dashboard

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy/chart"
Objects = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def helm() -> Path:
    return binaries("helm")["helm"]


def rendered(helm: Path, *settings: str) -> Objects:
    options = [option for setting in settings for option in ("--set", setting)]
    command = [helm, "template", "paddlejob", CHART, "--include-crds", "--kube-version", "1.36.0", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return by_name(yaml.load_all(done.stdout, yaml.CSafeLoader))


def by_name(documents: Any) -> Objects:
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in documents if one
    }


def files_of_v1() -> Objects:
    texts = [(ROOT / "deploy/v1" / name).read_text() for name in ("crd.yaml", "operator.yaml")]
    return by_name(one for text in texts for one in yaml.load_all(text, yaml.CSafeLoader))


def test_the_chart_passes_helms_own_lint(helm: Path) -> None:
    done = subprocess.run([helm, "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_with_default_values_the_chart_is_deploy_v1(helm: Path) -> None:
    assert rendered(helm) == files_of_v1()


def test_for_one_namespace_the_operator_has_permissions_there_and_nowhere_else(helm: Path) -> None:
    found = rendered(helm, "watch=training", "namespace=tools")
    wanted = by_name(manifests(namespace="tools", watch="training"))
    assert {key: one for key, one in found.items() if key[0] != "CustomResourceDefinition"} == wanted
    assert not [key for key in found if key[0].startswith("ClusterRole")]


def test_image_replicas_and_resources_are_values(helm: Path) -> None:
    found = rendered(
        helm, "image.repository=example/operator", "image.tag=2", "replicas=3", "resources.limits.memory=1Gi"
    )
    spec = found["Deployment", "paddle-system", "paddle-controller-manager"]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert (spec["replicas"], container["image"]) == (3, "example/operator:2")
    assert container["resources"]["limits"] == {"memory": "1Gi"}


def test_monitoring_adds_a_service_that_selects_the_operators_metrics(helm: Path) -> None:
    found = rendered(helm, "monitoring.serviceMonitor=true", "monitoring.labels.release=prometheus")
    service = found["Service", "paddle-system", "paddle-controller-manager-metrics"]
    monitor = found["ServiceMonitor", "paddle-system", "paddle-controller-manager"]
    pod = found["Deployment", "paddle-system", "paddle-controller-manager"]["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["ports"][0]["targetPort"] in [one["name"] for one in pod["spec"]["containers"][0]["ports"]]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


def test_alerts_and_a_dashboard_are_values(helm: Path) -> None:
    found = rendered(
        helm, "monitoring.alerts=true", "monitoring.labels.release=prometheus", "monitoring.dashboard=true"
    )
    rule = found["PrometheusRule", "paddle-system", "paddle-controller-manager"]
    assert rule["spec"] == rules()
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    config = found["ConfigMap", "paddle-system", "paddle-controller-manager-dashboard"]
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config["data"]["paddlejob.json"]) == json.loads(dashboard())


def test_a_priority_class_and_a_network_policy_are_values(helm: Path) -> None:
    found = rendered(helm, "priorityClassName=system-cluster-critical", "networkPolicy=true")
    pod = found["Deployment", "paddle-system", "paddle-controller-manager"]["spec"]["template"]
    assert pod["spec"]["priorityClassName"] == "system-cluster-critical"
    policy = found["NetworkPolicy", "paddle-system", "paddle-controller-manager"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    named = {one["name"] for one in pod["spec"]["containers"][0]["ports"]}
    assert {one["port"] for rule in policy["ingress"] for one in rule["ports"]} == named


def test_an_existing_namespace_can_be_used(helm: Path) -> None:
    assert "Namespace" not in [kind for kind, _, _ in rendered(helm, "createNamespace=false")]


def test_a_misspelled_value_is_rejected(helm: Path) -> None:
    command = [helm, "template", "x", CHART, "--kube-version", "1.36.0", "--set", "replica=2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "replica" in done.stderr


def test_the_kustomization_is_deploy_v1() -> None:
    command = [binaries("kubectl")["kubectl"], "kustomize", ROOT / "deploy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert by_name(yaml.load_all(done.stdout, yaml.CSafeLoader)) == files_of_v1()
