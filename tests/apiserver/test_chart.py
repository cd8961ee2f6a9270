"""The Helm chart and the kustomization produce exactly the objects of deploy/v1."""

from __future__ import annotations

import json
import os
import re
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from paddlejob.client.start.check import findings
from paddlejob.client.start.load import Loaded
from paddlejob.operator.manifests import manifests
from testbed.build.binaries import binaries
from tests.support.builders import document
from tools.chart_readme import described
from tools.monitoring.alerts import rules
from tools.monitoring.dashboard import dashboard

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy/chart"
PRODUCTION, EVERYTHING = CHART / "values-production.yaml", Path(__file__).with_name("every-value.yaml")
Objects = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def helm() -> Path:
    return binaries("helm")["helm"]


def rendered(helm: Path, *settings: str, more: tuple[str | Path, ...] = ("--skip-tests",)) -> Objects:
    options = [option for setting in settings for option in ("--set", setting)]
    command = [helm, "template", "paddlejob", CHART, "--include-crds", "--kube-version", "1.36.0", *options, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return by_name(yaml.load_all(done.stdout, yaml.CSafeLoader))


def by_name(documents: Any) -> Objects:
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in documents if one
    }


def deployed(found: Objects) -> Any:
    return found["Deployment", "paddle-system", "paddle-controller-manager"]["spec"]


def files_of_v1() -> Objects:
    texts = [(ROOT / "deploy/v1" / name).read_text() for name in ("crd.yaml", "operator.yaml")]
    return by_name(one for text in texts for one in yaml.load_all(text, yaml.CSafeLoader))


@pytest.mark.parametrize("values", [(), ("-f", PRODUCTION), ("-f", EVERYTHING)], ids=["default", "production", "all"])
def test_the_chart_passes_helms_own_lint(helm: Path, values: tuple[str | Path, ...]) -> None:
    done = subprocess.run([helm, "lint", "--strict", CHART, *values], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert rendered(helm, more=values)


def test_the_values_for_this_test_set_every_value() -> None:
    schema = (CHART / "values.schema.json").read_text()
    every = {one.path for one in described((CHART / "values.yaml").read_text(), schema)}
    assert {one.path for one in described(EVERYTHING.read_text(), schema)} == every


def test_in_production_two_replicas_keep_apart_and_metrics_need_a_token(helm: Path) -> None:
    found = rendered(helm, more=("-f", PRODUCTION, "--skip-tests"))
    spec = deployed(found)
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= labels.items()
    assert (spec["replicas"], pod["priorityClassName"]) == (2, "system-cluster-critical")
    (container,) = pod["containers"]
    (volume,), (mount,) = pod["volumes"], container["volumeMounts"]
    assert {"--metrics-auth", f"--metrics-certificate={mount['mountPath']}"} <= set(container["args"])
    secret = found["Secret", "paddle-system", volume["secret"]["secretName"]]
    (endpoint,) = found["ServiceMonitor", "paddle-system", "paddle-controller-manager"]["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": secret["metadata"]["name"], "key": "tls.crt"}
    certificate = x509.load_pem_x509_certificate(b64decode(secret["data"]["tls.crt"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [endpoint["tlsConfig"]["serverName"]]


def test_a_certificate_of_your_own_replaces_the_self_signed_one(helm: Path) -> None:
    settings = ("monitoring.auth=true", "monitoring.serviceMonitor=true", "monitoring.certificateSecret=mine")
    found = rendered(helm, *settings)
    assert [name for kind, _, name in found if kind == "Secret"] == ["paddlejob-agents"]
    pod = deployed(found)["template"]["spec"]
    assert pod["volumes"][0]["secret"]["secretName"] == "mine"
    (endpoint,) = found["ServiceMonitor", "paddle-system", "paddle-controller-manager"]["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": "mine", "key": "ca.crt"}


@pytest.mark.parametrize("watch", ["", "training"])
def test_the_helm_test_submits_a_valid_job_where_the_operator_looks_for_jobs(helm: Path, watch: str) -> None:
    found = rendered(helm, f"watch={watch}", more=())
    hooks = {key: one for key, one in found.items() if "helm.sh/hook" in one["metadata"].get("annotations", {})}
    assert {kind for kind, _, _ in hooks} == {"ServiceAccount", "Role", "RoleBinding", "Pod"}
    assert {namespace for _, namespace, _ in hooks} == {watch or "paddle-system"}
    (pod,) = [one for (kind, _, _), one in hooks.items() if kind == "Pod"]
    script = pod["spec"]["containers"][0]["args"][0]
    _, _, rest = script.partition("<<'JOB'\n")
    assert findings([Loaded("test", (yaml.safe_load(rest.partition("\nJOB\n")[0]),))]) == []


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
    spec = deployed(found)
    container = spec["template"]["spec"]["containers"][0]
    assert (spec["replicas"], container["image"]) == (3, "example/operator:2")
    assert container["resources"]["limits"] == {"memory": "1Gi"}


@pytest.mark.parametrize("tag", ["0.10", "20261116", "1234e5"])
def test_a_tag_that_yaml_reads_as_a_number_is_an_error_instead_of_another_tag(
    helm: Path, tag: str, tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(f"image: {{tag: {tag}}}")
    command = [helm, "template", "x", CHART, "--kube-version", "1.36.0", "-f", values]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "image.tag is a number; write it in quotes" in done.stderr
    values.write_text(f'image: {{tag: "{tag}"}}')
    found = rendered(helm, more=("-f", values, "--skip-tests"))
    (container,) = deployed(found)["template"]["spec"]["containers"]
    assert container["image"].endswith(f":{tag}")


def test_monitoring_adds_a_service_that_selects_the_operators_metrics(helm: Path) -> None:
    found = rendered(helm, "monitoring.serviceMonitor=true", "monitoring.labels.release=prometheus")
    service = found["Service", "paddle-system", "paddle-controller-manager-metrics"]
    monitor = found["ServiceMonitor", "paddle-system", "paddle-controller-manager"]
    pod = deployed(found)["template"]
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


def test_the_dashboard_needs_no_labels_of_its_own_and_the_namespace_may_exist(helm: Path) -> None:
    found = rendered(helm, "monitoring.dashboard=true", "monitoring.dashboardLabels=null", "createNamespace=false")
    assert "Namespace" not in [kind for kind, _, _ in found]
    labels = found["ConfigMap", "paddle-system", "paddle-controller-manager-dashboard"]["metadata"]["labels"]
    assert "grafana_dashboard" not in labels


def test_a_priority_class_and_a_network_policy_are_values(helm: Path) -> None:
    found = rendered(helm, "priorityClassName=system-cluster-critical", "networkPolicy=true")
    pod = deployed(found)["template"]
    assert pod["spec"]["priorityClassName"] == "system-cluster-critical"
    policy = found["NetworkPolicy", "paddle-system", "paddle-controller-manager"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    named = {one["name"] for one in pod["spec"]["containers"][0]["ports"]}
    assert {one["port"] for rule in policy["ingress"] for one in rule["ports"]} == named


def test_a_priority_class_of_the_system_comes_with_the_quota_that_some_clusters_require(helm: Path) -> None:
    found = rendered(helm, "priorityClassName=system-node-critical")
    spec = found["ResourceQuota", "paddle-system", "paddle-controller-manager"]["spec"]
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
    assert (spec["hard"], spec["scopeSelector"]["matchExpressions"]) == ({"pods": "100"}, [scope])
    assert not [key for key in rendered(helm, "priorityClassName=batch") if key[0] == "ResourceQuota"]


def test_a_misspelled_value_is_rejected(helm: Path) -> None:
    command = [helm, "template", "x", CHART, "--kube-version", "1.36.0", "--set", "replica=2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "replica" in done.stderr


def test_the_namespace_of_the_release_is_left_to_helm(helm: Path) -> None:
    """`helm install -n paddle-system --create-namespace` creates it first, and a second one would be a conflict."""
    assert ("Namespace", "", "paddle-system") in rendered(helm)
    found = rendered(helm, more=("--skip-tests", "--namespace", "paddle-system"))
    assert ("Namespace", "", "paddle-system") not in found


def kustomized(directory: Path) -> str:
    command = [binaries("kubectl")["kubectl"], "kustomize", directory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_kustomization_is_deploy_v1() -> None:
    assert by_name(yaml.load_all(kustomized(ROOT / "deploy"), yaml.CSafeLoader)) == files_of_v1()


POD = {
    "serviceAccountName": "trainer",
    "imagePullSecrets": [{"name": "token"}],
    "containers": [{"name": "paddle", "image": "a", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
    "initContainers": [
        {
            "name": "first",
            "image": "a",
            "env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "token", "key": "t"}}}],
        }
    ],
    "volumes": [
        {"name": "a", "configMap": {"name": "settings"}},
        {"name": "b", "secret": {"secretName": "token"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "token"}}, {"configMap": {"name": "settings"}}]}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
    ],
}


def test_kustomize_renames_what_the_templates_of_a_job_name(tmp_path: Path) -> None:
    made = document(ps=1, ps_={"template": {"spec": POD}}, worker_={"template": {"spec": POD}})
    others = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        for kind, name in (("PersistentVolumeClaim", "data"), ("ServiceAccount", "trainer"))
    ]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([made, *others]))
    overlay = {
        "resources": ["job.yaml"],
        "components": [os.path.relpath(ROOT / "deploy/kustomize", tmp_path.resolve())],
        "configMapGenerator": [{"name": "settings", "literals": ["lr=0.1"]}],
        "secretGenerator": [{"name": "token", "literals": ["t=1"]}],
        "namePrefix": "team-",
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    objects = list(yaml.load_all(kustomized(tmp_path), yaml.CSafeLoader))
    names = {one["metadata"]["name"].removeprefix("team-"): one["metadata"]["name"] for one in objects}
    names |= {name.rpartition("-")[0]: full for name, full in names.items() if name.startswith(("settings-", "token-"))}
    renamed = re.sub(r"\b(settings|token|data|trainer)\b(?!-)", lambda found: names[found[0]], json.dumps(POD))
    spec = next(one for one in objects if one["kind"] == "PaddleJob")["spec"]
    assert [spec[role]["template"]["spec"] for role in ("ps", "worker")] == [json.loads(renamed)] * 2
