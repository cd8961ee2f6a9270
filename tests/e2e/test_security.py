"""Security of the operator and of training pods, on a cluster that enforces it."""

from __future__ import annotations

import json

from testbed.cluster import Cluster
from tests.support.on_cluster import eventually, submit


def test_the_operators_pod_meets_the_restricted_level(operator: Cluster, cluster_namespace: str):
    operator.kubectl("label", "namespace", cluster_namespace, "pod-security.kubernetes.io/enforce=restricted")
    deployment = json.loads(
        operator.kubectl("-n", "paddle-system", "get", "deployment", "paddle-controller-manager", "-o", "json").stdout
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "twin"},
        "spec": deployment["spec"]["template"]["spec"] | {"serviceAccountName": "default"},
    }
    done = operator.kubectl(
        "-n", cluster_namespace, "create", "--dry-run=server", "-f", "-", input=json.dumps(pod), check=False
    )
    assert done.returncode == 0, done.stderr


def test_training_pods_have_no_token(operator: Cluster, cluster_namespace: str):
    job = submit(operator, cluster_namespace, "wide_and_deep.yaml")
    eventually("all pods are there", lambda: len(job.pods()) == 4)
    for pod in job.pods().values():
        mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0].get("volumeMounts", [])]
        assert not any("serviceaccount" in path for path in mounts)
    job.kubectl("delete", "pdj", job.name)
