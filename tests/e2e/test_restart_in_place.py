"""Restarts in place on real nodes: the real agent in real pods, and the operator behind its Service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.cluster import Cluster
from tests.support.builders import document
from tests.support.cluster_pdj import ClusterPdj
from tests.support.on_cluster import Job, eventually

IMAGE = "docker.io/paddlejob/mnist:v1"
PROGRAM = """
import os, time
attempt = int(os.environ["SYS_JOB_ID"].rpartition("-")[2])
print("training in attempt", attempt, flush=True)
if attempt == 1:
    time.sleep(4 if os.environ["PADDLE_TRAINER_ID"] == "0" else 600)
    raise SystemExit(1)
"""


def create(cluster: Cluster, namespace: str, name: str, template: dict[str, Any]) -> Job:
    made = document(name, restartStrategy="InPlace", cleanPodPolicy="Never", worker_={"template": template})
    made["metadata"]["namespace"] = namespace
    cluster.kubectl("create", "-f", "-", input=json.dumps(made))
    return Job(cluster, namespace, name)


def test_a_program_that_fails_starts_again_in_its_pods(operator: Cluster, cluster_namespace: str, tmp_path: Path):
    """Worker 0 fails while worker 1 waits for it, as in a collective operation."""
    container = {"name": "paddle", "image": IMAGE, "command": ["python3", "-c", PROGRAM]}
    template = {"spec": {"containers": [container]}}
    job = create(operator, cluster_namespace, "steady", template)
    job.until(phase="Running")
    before = {name: pod["metadata"]["uid"] for name, pod in job.pods().items()}

    status = job.until(phase="Completed")

    assert {name: pod["metadata"]["uid"] for name, pod in job.pods().items()} == before
    assert (status["attempt"], status["builtAttempt"], status["restarts"]) == (2, 1, 1)
    assert status.get("disruptions", 0) == 0
    for pod in before:
        assert [line for line in job.log(pod).splitlines() if line] == [
            "training in attempt 1",
            "paddlejob: attempt 2 begins in place",
            "training in attempt 2",
        ]
    pdj = ClusterPdj(operator.plane, tmp_path)
    options = ("--cluster", "-n", cluster_namespace, "--role", "worker", "--index", "1")
    done = pdj.run("logs", "steady", "--attempt", "2", *options)
    shown = [line for line in done.stdout.splitlines() if line]
    assert shown == ["paddlejob: attempt 2 begins in place", "training in attempt 2"], done.stderr


def test_without_a_way_to_the_operator_the_job_restarts_with_new_pods(operator: Cluster, cluster_namespace: str):
    """The agent gives up after some seconds and ends as the program did."""
    container = {"name": "paddle", "image": IMAGE, "command": ["sh", "-c", "case $SYS_JOB_ID in *-1) exit 1;; esac"]}
    aliases = [{"ip": "203.0.113.1", "hostnames": ["paddle-controller-manager-agents.paddle-system.svc"]}]
    template = {"spec": {"containers": [container], "hostAliases": aliases}}
    job = create(operator, cluster_namespace, "alone", template)
    status = job.until(phase="Completed")
    assert (status["attempt"], status.get("builtAttempt", 0), status["restarts"]) == (2, 0, 1)
    eventually("an event says why", lambda: "with new pods, because" in job.kubectl("get", "events"))
