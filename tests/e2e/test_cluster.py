"""The test cluster itself: if these tests fail, the others of this tier prove nothing."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.cluster import Cluster
from tests.support.processes import is_alive


def eventually(condition: Callable[[], bool], patience: float = 60) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.5)
    return False


def descendants(pid: int) -> set[int]:
    children = {
        int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()
    }
    return children.union(*map(descendants, children))


def pod(name: str, node: str, *command: str, **more: Any) -> str:
    container = {"name": "main", "image": "busybox", "command": list(command)}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container], **more}
    metadata = {"name": name, "labels": {"app": name}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def run(cluster: Cluster, namespace: str, document: str) -> None:
    cluster.kubectl("create", "-n", namespace, "-f", "-", input=document)
    name = json.loads(document)["metadata"]["name"]
    cluster.kubectl("wait", "-n", namespace, f"pod/{name}", "--for=condition=Ready", "--timeout=90s")


def say_hello(node: str) -> str:
    page = "mkdir /www && echo hello > /www/index.html && httpd -f -p 8080 -h /www"
    return pod("greeter", node, "sh", "-c", page)


def test_three_nodes_are_ready(cluster: Cluster) -> None:
    assert cluster.ready_nodes() == {"node-1", "node-2", "node-3"}


def test_a_pod_runs_and_its_output_is_read(cluster: Cluster, cluster_namespace: str) -> None:
    run(cluster, cluster_namespace, pod("talker", "node-1", "sh", "-c", "echo hello; sleep 3600"))
    assert cluster.kubectl("logs", "talker", "-n", cluster_namespace).stdout == "hello\n"
    output = cluster.kubectl("exec", "talker", "-n", cluster_namespace, "--", "hostname").stdout
    assert output == "talker\n"


def test_a_service_is_reached_by_its_name_from_another_node(cluster: Cluster, cluster_namespace: str) -> None:
    run(cluster, cluster_namespace, say_hello("node-1"))
    run(cluster, cluster_namespace, pod("visitor", "node-2", "sleep", "3600"))
    cluster.kubectl("expose", "pod", "greeter", "-n", cluster_namespace, "--port=80", "--target-port=8080")
    url = f"http://greeter.{cluster_namespace}.svc"
    visit = ["exec", "visitor", "-n", cluster_namespace, "--", "timeout", "5", "wget", "-q", "-O-", url]
    assert eventually(lambda: cluster.kubectl(*visit, check=False).stdout == "hello\n")


@pytest.mark.full
def test_the_address_of_a_pod_that_is_gone_stays_known_where_names_are_cached(
    cluster: Cluster, cluster_namespace: str
) -> None:
    run(cluster, cluster_namespace, pod("visitor", "node-2", "sleep", "3600"))
    run(cluster, cluster_namespace, say_hello("node-1"))
    cluster.kubectl("expose", "pod", "greeter", "-n", cluster_namespace, "--port=80", "--cluster-ip=None")
    name = f"greeter.{cluster_namespace}.svc.cluster.local"
    look_up = ["exec", "visitor", "-n", cluster_namespace, "--", "nslookup", name]

    def known() -> bool:
        return f"Name:\t{name}" in cluster.kubectl(*look_up, check=False).stdout

    with cluster.names.cached():
        assert eventually(known)
        cluster.kubectl("delete", "pod", "greeter", "-n", cluster_namespace, "--force", "--grace-period=0")
        time.sleep(10)
        assert known()
    assert eventually(lambda: not known())


@pytest.mark.full
def test_a_service_is_reached_from_where_the_control_plane_runs(cluster: Cluster, cluster_namespace: str) -> None:
    run(cluster, cluster_namespace, say_hello("node-3"))
    cluster.kubectl("expose", "pod", "greeter", "-n", cluster_namespace, "--port=80", "--target-port=8080")
    shown = ["get", "service", "greeter", "-n", cluster_namespace, "-o", "jsonpath={.spec.clusterIP}"]
    visit = [*cluster.switch.enter, "busybox", "wget", "-q", "-O-", f"http://{cluster.kubectl(*shown).stdout}"]
    assert eventually(lambda: subprocess.run(visit, capture_output=True).stdout == b"hello\n")


@pytest.mark.full
def test_an_image_that_the_registry_lacks_is_not_pulled_from_elsewhere(
    cluster: Cluster, cluster_namespace: str
) -> None:
    missing = json.loads(pod("missing", "node-1", "true"))
    missing["spec"]["containers"][0]["image"] = "docker.io/library/hello-world:latest"
    cluster.kubectl("create", "-n", cluster_namespace, "-f", "-", input=json.dumps(missing))
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}"
    shown = ["get", "pod", "missing", "-n", cluster_namespace, "-o", reason]
    assert eventually(lambda: cluster.kubectl(*shown).stdout in ("ErrImagePull", "ImagePullBackOff"))


@pytest.mark.full
def test_a_killed_node_is_noticed_and_comes_back(cluster: Cluster, cluster_namespace: str) -> None:
    victim = cluster.nodes[2]
    run(cluster, cluster_namespace, pod("orphan", victim.name, "sleep", "3600"))
    victim.kill()
    assert eventually(lambda: victim.name not in cluster.ready_nodes())
    victim.start()
    cluster.wait_ready(victim)
    run(cluster, cluster_namespace, pod("settler", victim.name, "sleep", "3600"))


@pytest.mark.full
def test_containers_on_a_node_without_network_keep_running(cluster: Cluster, cluster_namespace: str) -> None:
    lonely = cluster.nodes[1]
    run(cluster, cluster_namespace, pod("hermit", lonely.name, "sleep", "4242"))
    lonely.cut()
    try:
        assert eventually(lambda: lonely.name not in cluster.ready_nodes())
        assert "sleep 4242" in lonely.run("ps", "ax").stdout
    finally:
        lonely.mend()
    cluster.wait_ready(lonely)


@pytest.mark.full
@pytest.mark.usefixtures("cluster")
def test_nothing_outlives_a_second_cluster_whose_owner_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "testbed", "up", "--nodes=1"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as owner:
        assert owner.stderr is not None
        assert any("is up" in line for line in iter(owner.stderr.readline, ""))
        family = descendants(owner.pid)
        names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in family}
        assert {"etcd", "kube-apiserver", "containerd", "kubelet", "kube-proxy", "coredns"} <= names
        owner.kill()
    assert eventually(lambda: not any(map(is_alive, family)), patience=20)
