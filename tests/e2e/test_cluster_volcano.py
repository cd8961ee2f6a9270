"""Volcano on the test cluster: the pods of a gang start together or not at all."""

import json
import time
from typing import Any

import pytest

from testbed.addons.volcano import Volcano
from testbed.cluster import Cluster

pytestmark = pytest.mark.full
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "quartet"},
    "spec": {"minMember": 4},
}


def member(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "3600"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"member-{number}", "annotations": {"scheduling.k8s.io/group-name": "quartet"}},
        "spec": {"schedulerName": "volcano", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }


def test_four_members_run_when_the_fourth_arrives(cluster: Cluster, volcano: Volcano, cluster_namespace: str) -> None:
    def create(*documents: dict[str, Any]) -> None:
        bundle = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        cluster.kubectl("create", "-n", cluster_namespace, "-f", "-", input=json.dumps(bundle))

    create(GROUP, *map(member, range(3)))
    time.sleep(5)
    placed = cluster.kubectl("get", "pods", "-n", cluster_namespace, "-o", "jsonpath={.items[*].spec.nodeName}")
    assert placed.stdout == ""
    create(member(3))
    cluster.kubectl("wait", "-n", cluster_namespace, "pods", "--all", "--for=condition=Ready", "--timeout=90s")
