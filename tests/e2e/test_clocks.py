"""Nodes whose clocks are wrong, and whose containerd writes local time: jobs are judged by what pods say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from paddlejob.plan import times
from testbed import clocks
from testbed.cluster import Cluster
from testbed.nodes.node import Node
from tests.support.on_cluster import DEPLOYMENT, Job, eventually

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not clocks.SUPPORTED, reason="clocks can be shifted on x86-64 only"),
]

SAVES = "trap 'echo saved; exit 0' TERM; while true; do sleep 0.2; done"
"""A program that saves a checkpoint when it is asked to end, and exits with 0."""
PRINTS = "step=0; while true; do step=$((step + 1)); echo step=$step loss=0.5; sleep 1; done"
BEHIND, AHEAD = -3600, 120


@pytest.fixture
def node(operator: Cluster) -> Iterator[Node]:
    yield operator.nodes[0]
    operator.step_clock(operator.nodes[0], 0)


def create(cluster: Cluster, namespace: str, command: str, workers: int = 1, **spec: object) -> Job:
    container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", command]}
    placed = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}, "containers": [container]}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "timed"},
        "spec": {"worker": {"replicas": workers, "template": {"spec": placed}}, **spec},
    }
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(document))
    job = Job(cluster, namespace, "timed")
    job.until(phase="Running")
    return job


def scale_operator(cluster: Cluster, replicas: int) -> None:
    """Start the operator, or stop it and wait until it has ended."""
    cluster.kubectl("-n", "paddle-system", "scale", DEPLOYMENT, f"--replicas={replicas}")
    if replicas:
        cluster.kubectl("-n", "paddle-system", "rollout", "status", DEPLOYMENT, "--timeout=120s")
    listed = ("-n", "paddle-system", "get", "pods", "-o", "name")
    eventually("the operator stops", lambda: replicas or not cluster.kubectl(*listed).stdout)


def test_workers_that_are_deleted_while_the_operator_is_away_have_not_succeeded(
    operator: Cluster, cluster_namespace: str, node: Node
):
    """By the clock of their node they ended before anybody asked them to."""
    job = create(operator, cluster_namespace, SAVES, workers=2, cleanPodPolicy="Never")
    operator.step_clock(node, -3)
    scale_operator(operator, 0)
    try:
        for name in job.pods():
            hold = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
            job.kubectl("patch", "pod", name, "--type=merge", "-p", hold)
            job.kubectl("delete", "pod", name, "--wait=false", "--grace-period=5")
        eventually("they have ended", lambda: all(ended(pod) for pod in job.pods().values()))
        for pod in job.pods().values():
            asked = times.parse(pod["metadata"]["deletionTimestamp"]) - pod["metadata"]["deletionGracePeriodSeconds"]
            assert times.parse(ended(pod)["finishedAt"]) < asked, "the facts contradict each other"
    finally:
        scale_operator(operator, 1)
    status = job.until(attempt=2)
    assert (status["phase"], status.get("disruptions")) == ("Restarting", 1)
    for name in job.pods():
        job.kubectl("patch", "pod", name, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
    job.until(phase="Running", attempt=2, restarts=0, disruptions=1)


def ended(pod: dict) -> dict:
    (container,) = pod["status"]["containerStatuses"]
    found: dict = container["state"].get("terminated", {})
    return found


def test_a_job_that_prints_has_not_stalled_whatever_the_clock_of_its_node_does(
    operator: Cluster, cluster_namespace: str, node: Node
):
    job = create(operator, cluster_namespace, PRINTS, stallSeconds=20)
    changes = (
        lambda: operator.step_clock(node, BEHIND),
        lambda: node.end_daylight_saving(2),
        lambda: operator.step_clock(node, AHEAD),
    )
    for change in changes:
        change()
        printed = len(job.log("timed-worker-0").splitlines())
        eventually(
            "the step rises",
            lambda printed=printed: _step(job) > printed + 30 or job.status().get("restarts"),
            patience=120,
        )
        assert (job.status()["phase"], job.status().get("restarts", 0)) == ("Running", 0)


def _step(job: Job) -> int:
    return int((job.status().get("progress") or {}).get("step") or 0)
