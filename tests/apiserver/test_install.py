"""`pdj install` and `pdj uninstall` on a control plane of their own, where fake nodes run the operator's pod."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.operator.manifests import IMAGE
from testbed.build.binaries import binaries
from testbed.controlplane import ControlPlane
from tests.support.builders import document
from tests.support.cluster_pdj import ClusterPdj

DEPLOYMENT = ("deployment", "paddle-controller-manager", "-n", "paddle-system")


@pytest.fixture
def pdj(kwok_cluster: ControlPlane, tmp_path: Path) -> Iterator[ClusterPdj]:
    runner = ClusterPdj(kwok_cluster, tmp_path)
    yield runner
    names = "-o=jsonpath={.items[*].metadata.namespace}"
    selector = "-l=app.kubernetes.io/name=paddlejob"
    for namespace in kwok_cluster.kubectl("get", "deployments", "-A", selector, names).stdout.split():
        runner.run("uninstall", "--yes", "-n", namespace)
    kwok_cluster.kubectl("delete", "crd", "paddlejobs.batch.paddlepaddle.org", "--ignore-not-found")


@pytest.fixture
def plane(kwok_cluster: ControlPlane) -> ControlPlane:
    return kwok_cluster


def job_file(pdj: ClusterPdj, namespace: str) -> str:
    made = document("story", workers=1)
    made["metadata"]["namespace"] = namespace
    return pdj.write(made)


def held(plane: ControlPlane, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plane.kubectl("get", *arguments, "-o", "json").stdout)
    return found


def verdicts(pdj: ClusterPdj, *arguments: str) -> dict[str, str]:
    found = json.loads(pdj.run("doctor", "--cluster", "-o", "json", *arguments).stdout)
    return {one["what"]: one["verdict"] for one in found}


def test_from_nothing_to_an_operator_and_back(pdj: ClusterPdj, plane: ControlPlane, kwok_namespace: str) -> None:
    early = pdj.run("submit", job_file(pdj, kwok_namespace))
    assert early.returncode == 1
    assert "install it and the operator with `pdj install`" in early.stderr
    assert {"PaddleJob": "change", "operator": "change"}.items() <= verdicts(pdj).items()

    done = pdj.run("install")
    assert done.returncode == 0, done.stderr
    assert "The operator is ready and watches all namespaces; next: `pdj submit FILE`" in done.stdout
    assert held(plane, *DEPLOYMENT)["status"]["availableReplicas"] == 1
    assert set(verdicts(pdj, "-n", kwok_namespace).values()) <= {"good", "note"}

    submitted = pdj.run("submit", job_file(pdj, kwok_namespace))
    assert (submitted.returncode, submitted.stderr) == (0, "")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    plane.kubectl("apply", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "dataset", "namespace": "paddle-system"}, "spec": claim,
    }))  # fmt: skip

    asked = pdj.run("uninstall")
    assert asked.returncode == 2
    assert f"deletes 1 PaddleJob (1 unfinished) with all pods and logs: 1 in {kwok_namespace}" in asked.stderr
    assert "deletes 1 persistent volume claim in namespace paddle-system with all data: dataset" in asked.stderr
    assert "confirm with --yes" in asked.stderr
    assert held(plane, *DEPLOYMENT)

    gone = pdj.run("uninstall", "--yes")
    assert gone.returncode == 0, gone.stderr
    for kind in ("crd paddlejobs.batch.paddlepaddle.org", "namespace paddle-system"):
        assert plane.kubectl("get", *kind.split(), check=False).returncode == 1
    left = plane.kubectl("get", "clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/name=paddlejob").stdout
    assert left == ""
    assert "No operator is installed" in pdj.run("uninstall", "--yes").stdout


def test_installing_again_brings_a_new_version_and_leaves_jobs_alone(
    pdj: ClusterPdj, plane: ControlPlane, kwok_namespace: str
) -> None:
    for name in ("crd.yaml", "operator.yaml"):
        plane.kubectl("create", "-f", str(Path(__file__).parents[2] / "deploy/v1" / name))
    assert pdj.run("install").returncode == 0
    assert pdj.run("submit", job_file(pdj, kwok_namespace)).returncode == 0
    before = held(plane, "pdj", "story", "-n", kwok_namespace)

    done = pdj.run("install", "--image", "example/operator:2", "--replicas", "2")
    assert done.returncode == 0, done.stderr
    assert "waiting: " in done.stdout
    spec = held(plane, *DEPLOYMENT)["spec"]
    assert spec["replicas"] == 2
    assert [one["image"] for one in spec["template"]["spec"]["containers"]] == ["example/operator:2"]
    after = held(plane, "pdj", "story", "-n", kwok_namespace)
    assert after["metadata"] == before["metadata"]

    again = pdj.run("install")
    assert again.returncode == 0, again.stderr
    assert "keeps the image example/operator:2; change it with --image" in again.stdout
    spec = held(plane, *DEPLOYMENT)["spec"]
    assert spec["replicas"] == 2
    assert [one["image"] for one in spec["template"]["spec"]["containers"]] == ["example/operator:2"]
    assert pdj.run("install", "--image", IMAGE, "--replicas", "1").returncode == 0
    assert held(plane, *DEPLOYMENT)["spec"]["replicas"] == 1

    kept = pdj.run("uninstall", "--yes", "--keep-jobs")
    assert "keeps the PaddleJob CRD and all jobs" in kept.stderr
    assert held(plane, "pdj", "story", "-n", kwok_namespace)["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.full
def test_for_one_namespace_the_operator_gets_rights_there_only(
    pdj: ClusterPdj, plane: ControlPlane, kwok_namespace: str
) -> None:
    missing = pdj.run("install", "--watch", "nowhere")
    assert (missing.returncode, "namespace nowhere not found" in missing.stderr) == (2, True)

    assert pdj.run("install").returncode == 0
    assert pdj.run("install", "--watch", kwok_namespace).returncode == 0
    assert plane.kubectl("get", "clusterrole", "paddle-controller-manager", check=False).returncode == 1
    may = ("auth", "can-i", "create", "pods", "--as=system:serviceaccount:paddle-system:paddle-controller-manager")
    assert plane.kubectl(*may, "-n", kwok_namespace).stdout.strip() == "yes"
    assert plane.kubectl(*may, "-n", "default", check=False).stdout.strip() == "no"

    elsewhere = pdj.run("submit", job_file(pdj, "default"))
    assert elsewhere.returncode == 0
    assert "warning: no operator watches namespace default" in elsewhere.stderr
    why = pdj.run("why", "story", "--cluster", "-n", "default")
    assert f"paddle-system/paddle-controller-manager watches namespace {kwok_namespace}" in why.stdout

    second = pdj.run("install", "-n", "tools", "--watch", kwok_namespace)
    assert second.returncode == 1
    assert "two operators must not manage the same jobs" in second.stderr
    third = pdj.run("install", "-n", "tools", "--watch", "default")
    assert third.returncode == 0, third.stderr
    assert "all jobs because another operator is installed" in pdj.run("uninstall", "--yes", "-n", "tools").stderr


@pytest.mark.full
def test_an_operator_of_one_namespace_watches_all_of_them_only_if_that_is_asked_for(
    pdj: ClusterPdj, plane: ControlPlane, kwok_namespace: str
) -> None:
    assert pdj.run("install", "--watch", kwok_namespace).returncode == 0
    before = held(plane, *DEPLOYMENT)["spec"]

    silent = pdj.run("install")
    assert silent.returncode == 2
    assert f"watches only namespace {kwok_namespace}, and this would make it watch all of them" in silent.stderr
    assert "--all-namespaces" in silent.stderr
    assert held(plane, *DEPLOYMENT)["spec"] == before
    assert plane.kubectl("get", "clusterrole", "paddle-controller-manager", check=False).returncode == 1

    shown = next(part for part in silent.stderr.split("`") if part.startswith("pdj install"))
    assert pdj.run(*shlex.split(shown)[1:]).returncode == 0
    assert held(plane, *DEPLOYMENT)["spec"] == before

    wide = pdj.run("install", "--all-namespaces")
    assert wide.returncode == 0, wide.stderr
    assert "watches all namespaces" in wide.stdout
    both = pdj.run("install", "--all-namespaces", "--watch", kwok_namespace)
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)


@pytest.mark.full
def test_a_namespace_that_holds_other_things_is_used_and_kept(
    pdj: ClusterPdj, plane: ControlPlane, kwok_namespace: str
) -> None:
    before = held(plane, "namespace", kwok_namespace)["metadata"]
    assert pdj.run("install", "-n", kwok_namespace, "--watch", kwok_namespace).returncode == 0
    assert pdj.run("uninstall", "-n", kwok_namespace, "--yes").returncode == 0
    assert held(plane, "namespace", kwok_namespace)["metadata"] == before
    assert held(plane, "deployments", "-n", kwok_namespace)["items"] == []


@pytest.mark.full
def test_the_reason_why_the_operator_does_not_start_is_reported(
    pdj: ClusterPdj, plane: ControlPlane, kwok_namespace: str
) -> None:
    plane.kubectl("create", "quota", "none", "--hard=pods=0", "-n", kwok_namespace)
    done = pdj.run("install", "-n", kwok_namespace, "--watch", kwok_namespace, "--timeout", "5")
    assert done.returncode == 1
    assert "the API server rejects its pods: " in done.stderr
    assert "exceeded quota: none" in done.stderr
    assert pdj.run("doctor", "--cluster", "-n", kwok_namespace).returncode == 1
    pdj.run("uninstall", "-n", kwok_namespace, "--yes")


@pytest.mark.full
def test_webhooks_left_behind_by_volcano_are_reported_with_the_commands_that_delete_them(
    pdj: ClusterPdj, plane: ControlPlane
) -> None:
    for kind, verb in (("ValidatingWebhookConfiguration", "validate"), ("MutatingWebhookConfiguration", "mutate")):
        left = webhook(kind, f"volcano-admission-service-pods-{verb}", "volcano-system")
        plane.kubectl("create", "-f", "-", input=yaml.safe_dump(left))
    living = webhook(
        "ValidatingWebhookConfiguration", "volcano-admission-service-queues-validate", "default", "kubernetes"
    )
    plane.kubectl("create", "-f", "-", input=yaml.safe_dump(living))
    try:
        done = pdj.run("install")
        assert done.returncode == 1
        commands = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith("kubectl delete")]
        assert commands == [
            "kubectl delete validatingwebhookconfigurations volcano-admission-service-pods-validate",
            "kubectl delete mutatingwebhookconfigurations volcano-admission-service-pods-mutate",
        ]
        assert plane.kubectl("get", "namespace", "paddle-system", check=False).returncode == 1, "nothing is half done"
        advised = pdj.run("doctor", "--cluster").stdout
        assert all(command in advised for command in commands)

        for command in commands:
            plane.kubectl(*shlex.split(command)[1:])
        assert pdj.run("install").returncode == 0
        assert verdicts(pdj)["webhooks"] == "good"
    finally:
        for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
            names = [f"volcano-admission-service-{one}" for one in ("pods-validate", "pods-mutate", "queues-validate")]
            plane.kubectl("delete", kind, "--ignore-not-found", *names)


@pytest.mark.full
def test_what_helm_installed_is_left_to_helm(pdj: ClusterPdj, plane: ControlPlane) -> None:
    helm = [str(binaries("helm")["helm"])]
    chart = str(Path(__file__).parents[2] / "deploy/chart")
    subprocess.run([*helm, "install", "training", chart, "--wait"], env=pdj.environment, check=True)
    try:
        assert held(plane, *DEPLOYMENT)["status"]["availableReplicas"] == 1
        for verb in ("install", "uninstall"):
            rejected = pdj.run(verb)
            assert rejected.returncode != 0
            assert "belongs to the Helm release training" in rejected.stderr
    finally:
        subprocess.run([*helm, "uninstall", "training", "--wait"], env=pdj.environment, check=True)
    assert plane.kubectl("get", "namespace", "paddle-system", check=False).returncode == 1


def test_a_dry_run_needs_no_cluster_and_prints_deploy_v1(pdj: ClusterPdj) -> None:
    pdj.environment["KUBECONFIG"] = "/nowhere"
    printed = list(yaml.load_all(pdj.run("install", "--dry-run").stdout, yaml.CSafeLoader))
    folder = Path(__file__).parents[2] / "deploy/v1"
    files = [
        one
        for name in ("crd.yaml", "operator.yaml")
        for one in yaml.load_all((folder / name).read_text(), yaml.CSafeLoader)
    ]
    assert printed == files


def webhook(kind: str, name: str, namespace: str, service: str = "volcano-admission-service") -> dict[str, Any]:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    queues = {**pods, "apiGroups": ["scheduling.volcano.sh"], "resources": ["queues"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{name}.volcano.sh",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"service": {"namespace": namespace, "name": service, "path": "/pods"}},
                "rules": [queues if "queues" in name else pods],
            }
        ],
    }
