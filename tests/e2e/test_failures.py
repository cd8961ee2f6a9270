"""Failures of real pods and nodes: the job completes, or fails with a reason, and leaves nothing behind."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testbed.cluster import Cluster
from tests.support.cluster_pdj import ClusterPdj
from tests.support.on_cluster import Job, eventually, submit

LONG = {"EPOCHS": 500}
SHORT = {"EPOCHS": 1, "SAMPLES": 4000}


def trains(job: Job) -> bool:
    return "epoch 1/" in job.log(f"{job.name}-worker-0")


def long_job(cluster: Cluster, namespace: str, name: str) -> Job:
    job = submit(cluster, namespace, "wide_and_deep_podip.yaml", name=name, worker_env=LONG, ps_env=LONG, quick=True)
    job.until(phase="Running")
    return job


@pytest.mark.full
def test_a_node_is_killed_and_the_job_is_rebuilt_elsewhere(operator: Cluster, cluster_namespace: str):
    """A node that does not run the operator."""
    job = long_job(operator, cluster_namespace, "survivor")
    eventually("it trains", lambda: trains(job))
    doomed = _node_of(operator, job)
    doomed.kill()
    try:
        job.until(disruptions=1, restarts=0)
        job.until(phase="Running", worker_ready="2/2", ps_ready="2/2")
        assert doomed.name not in {pod["spec"]["nodeName"] for pod in job.pods().values()}
    finally:
        doomed.start()
        operator.wait_ready(doomed)
    pods = {name: pod["metadata"]["uid"] for name, pod in job.pods().items()}
    time.sleep(5)
    assert {name: pod["metadata"]["uid"] for name, pod in job.pods().items()} == pods, "old pods do no harm"
    job.kubectl("delete", "pdj", job.name)
    eventually("nothing is left", lambda: not job.pods())


def _node_of(cluster: Cluster, job: Job):
    listed = json.loads(cluster.kubectl("-n", "paddle-system", "get", "pods", "-o", "json").stdout)["items"]
    operators = {pod["spec"].get("nodeName") for pod in listed}
    used = [pod["spec"]["nodeName"] for pod in job.pods().values()]
    name = next(node for node in used if node not in operators)
    return next(node for node in cluster.nodes if node.name == name)


KILL = """
import os, pathlib
for found in pathlib.Path("/proc").glob("[0-9]*/environ"):
    if b"HOSTNAME=%s" in found.read_bytes().split(bytes(1)):
        os.kill(int(found.parent.name), 9)
"""


def _kill_process(cluster: Cluster, job: Job, pod: str) -> None:
    """kill -9 on the pod's node, which sees only its own processes."""
    name = job.pods()[pod]["spec"]["nodeName"]
    node = next(one for one in cluster.nodes if one.name == name)
    node.run(sys.executable, "-c", KILL % pod)


@pytest.mark.full
def test_a_pod_deleted_by_force_and_a_process_killed(operator: Cluster, cluster_namespace: str):
    job = long_job(operator, cluster_namespace, "tough")
    eventually("it trains", lambda: trains(job))
    job.kubectl("delete", "pod", "tough-worker-1", "--force", "--grace-period=0")
    job.until(phase="Running", disruptions=1, restarts=0)
    eventually("it trains again", lambda: trains(job))
    _kill_process(operator, job, "tough-ps-0")
    job.until(phase="Running", restarts=1, disruptions=1)
    job.kubectl("delete", "pdj", job.name)
    eventually("nothing is left", lambda: not job.pods())


@pytest.mark.full
def test_a_node_that_loses_its_network_and_returns_does_no_harm(operator: Cluster, cluster_namespace: str):
    job = long_job(operator, cluster_namespace, "islander")
    eventually("it trains", lambda: trains(job))
    lost = _node_of(operator, job)
    lost.cut()
    try:
        job.until(disruptions=1)
        job.until(phase="Running", worker_ready="2/2", ps_ready="2/2")
    finally:
        lost.mend()
        operator.wait_ready(lost)
    job.kubectl("delete", "pdj", job.name)
    eventually("nothing is left", lambda: not job.pods())


@pytest.mark.full
def test_the_operator_is_killed_and_upgraded_while_a_job_runs(operator: Cluster, cluster_namespace: str):
    job = long_job(operator, cluster_namespace, "calm")
    pods = {name: pod["metadata"]["uid"] for name, pod in job.pods().items()}
    operator.kubectl("-n", "paddle-system", "delete", "pods", "--all", "--force", "--grace-period=0")
    operator.kubectl("-n", "paddle-system", "set", "env", "deployment/paddle-controller-manager", "UPGRADED=yes")
    operator.kubectl(
        *["-n", "paddle-system", "rollout", "status", "deployment/paddle-controller-manager", "--timeout=180s"]
    )
    assert {name: pod["metadata"]["uid"] for name, pod in job.pods().items()} == pods
    job.kubectl("delete", "pdj", job.name)
    other = submit(
        operator, cluster_namespace, "wide_and_deep_podip.yaml", name="after", worker_env=SHORT, ps_env=SHORT
    )
    other.until(phase="Completed")


@pytest.mark.full
def test_the_api_server_is_down_for_half_a_minute(operator: Cluster, cluster_namespace: str):
    job = long_job(operator, cluster_namespace, "patient")
    pods = {name: pod["metadata"]["uid"] for name, pod in job.pods().items()}
    operator.plane.kill_apiserver()
    time.sleep(30)
    operator.plane.start_apiserver()
    operator.wait_ready()
    job.until(phase="Running", restarts=0, disruptions=0)
    assert {name: pod["metadata"]["uid"] for name, pod in job.pods().items()} == pods
    job.kubectl("delete", "pdj", job.name)


@pytest.mark.full
def test_logs_are_followed_over_a_connection_that_breaks(operator: Cluster, cluster_namespace: str, tmp_path: Path):
    """Every line appears once, although the API server restarts in between."""
    counting = "for n in $(seq 1 60); do echo line $n; sleep 0.5; done"
    job = create(operator, cluster_namespace, "talker", ["sh", "-c", counting], policy="Never", workers=1)
    job.until(phase="Running")
    pdj = ClusterPdj(operator.plane, tmp_path)
    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(pdj.run, "logs", "-f", job.name, "--cluster", "-n", cluster_namespace)
        eventually("it has written 8 lines", lambda: "line 8\n" in job.log(f"{job.name}-worker-0"))
        operator.plane.kill_apiserver()
        time.sleep(5)
        operator.plane.start_apiserver()
        done = followed.result()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"line {n}" for n in range(1, 61)]
    assert "retrying" in done.stderr


FAILURE_POLICY = {
    "rules": [
        {"action": "Fail", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [75]}},
    ]
}


@pytest.mark.full
def test_the_failure_policy_ends_a_job_at_once_or_restarts_it_without_counting(
    operator: Cluster, cluster_namespace: str
):
    """Exit status 42 means bad data; 75 asks for another attempt, of which the third succeeds."""
    bad = create(
        operator, cluster_namespace, "bad", ["sh", "-c", "echo bad record 7; exit 42"], "Never", backoffLimit=3,
        failurePolicy=FAILURE_POLICY,
    )  # fmt: skip
    status = bad.until(phase="Failed")
    assert (status["reason"], status["attempt"], status.get("restarts", 0)) == ("FailurePolicy", 1, 0)
    assert "failurePolicy.rules[0] ends the job instead of restarting it" in status["message"]
    assert "bad record 7" in status["message"], "and the output of the program"
    third = "case $SYS_JOB_ID in *-3) exit 0;; *) exit 75;; esac"
    retry = create(operator, cluster_namespace, "retry", ["sh", "-c", third], "Never", failurePolicy=FAILURE_POLICY)
    status = retry.until(phase="Completed")
    assert (status["attempt"], status["ignoredFailures"], status.get("restarts", 0)) == (3, 2, 0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("policy", "left_after_success", "left_after_failure"),
    [("Always", 0, 0), ("Never", 2, 2), ("OnFailure", 2, 0), ("OnCompletion", 0, 2)],
)
def test_clean_pod_policy(
    operator: Cluster, cluster_namespace: str, policy: str, left_after_success: int, left_after_failure: int
):
    for code, left in ((0, left_after_success), (1, left_after_failure)):
        job = create(operator, cluster_namespace, f"{policy.lower()}-{code}", ["sh", "-c", f"exit {code}"], policy)
        job.until(phase="Failed" if code else "Completed")
        eventually(f"{left} pods stay", lambda job=job, left=left: len(job.pods()) == left)
        time.sleep(2)
        assert len(job.pods()) == left
        assert all(pod["status"]["phase"] != "Running" for pod in job.pods().values())


def create(
    cluster: Cluster, namespace: str, name: str, command: list[str], policy: str, workers: int = 2, **more: Any
) -> Job:
    container = {"name": "paddle", "image": "busybox", "command": command}
    spec = {
        "cleanPodPolicy": policy,
        "backoffLimit": 0,
        "worker": {"replicas": workers, "template": {"spec": {"containers": [container]}}},
        **more,
    }
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": spec,
    }
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(document))
    return Job(cluster, namespace, name)
