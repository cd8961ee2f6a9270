"""An elastic job on real nodes: it starts with what fits, grows, loses a node, and completes from its checkpoint."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.cluster import Cluster
from tests.support.on_cluster import QUICK, Job, eventually

SLOT = "example.com/slot"
"""An extended resource of which each worker requests one: it decides how many workers fit, whatever the machine has."""
WORKS = """
echo $PADDLE_TRAINER_ID >> /shared/ranks.$SYS_JOB_ID
export OUTPUT_DIR=/shared/model STEPS=$(cat /shared/steps)
exec python3 train.py
"""


def set_room(cluster: Cluster, node: str, slots: int) -> None:
    has = {SLOT: str(slots)}
    patch = json.dumps({"status": {"capacity": has, "allocatable": has}})
    cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)


def document(shared: Path) -> dict[str, Any]:
    container = {
        "name": "paddle",
        "image": "paddlejob/checkpoint:v1",
        "command": ["sh", "-c", WORKS],
        "env": [{"name": "SAVE_EVERY", "value": "10"}, {"name": "STEP_SECONDS", "value": "0.1"}],
        "resources": {"limits": {SLOT: 1}},
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    volumes = [{"name": "shared", "hostPath": {"path": str(shared)}}]
    template = {"spec": {"containers": [container], "volumes": volumes, **QUICK}}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "elastic"},
        "spec": {
            "elastic": 1,
            "cleanPodPolicy": "Never",
            # Peers of a worker on a dead node may fail before the node is known to be dead.
            "backoffLimit": 20,
            "scheduleTimeoutSeconds": 10,
            "growthIntervalSeconds": 15,
            "worker": {"replicas": 4, "requests": 2, "limits": 4, "template": template},
        },
    }


def first_worker_log(job: Job) -> str:
    """What rank 0 has printed in the current attempt."""
    members = job.status()["worker"]["members"]
    return job.log(f"{job.name}-worker-{re.split('[-,]', members)[0]}")


def until_training(job: Job, workers: int) -> int:
    """Wait until rank 0 of an attempt with this many workers reports a step; returns the step that it began after."""
    begun = rf"worker 0 of {workers} starts after step (\d+)"
    found = eventually(
        f"{workers} workers train",
        lambda: re.search(rf"{begun}[^$]*step=\d+/\d+ loss=", first_worker_log(job)),
    )
    return int(found[1])


def last_step(shared: Path) -> int:
    saved = sorted((shared / "model").glob("step-*.pdckpt"))
    return int(saved[-1].stem.removeprefix("step-"))


@pytest.mark.full
def test_an_elastic_job_starts_with_three_of_four_workers_grows_loses_a_node_and_completes(
    operator: Cluster, cluster_namespace: str, tmp_path: Path
):
    listed = json.loads(operator.kubectl("-n", "paddle-system", "get", "pods", "-o", "json").stdout)["items"]
    home = next(pod["spec"]["nodeName"] for pod in listed if pod["spec"].get("nodeName"))
    doomed = next(node for node in operator.nodes if node.name != home)
    for node in operator.nodes:
        set_room(operator, node.name, 1)
    (tmp_path / "steps").write_text("1000000")
    job = Job(operator, cluster_namespace, "elastic")
    operator.kubectl("-n", cluster_namespace, "create", "-f", "-", input=json.dumps(document(tmp_path)))
    try:
        job.until(phase="Running", worker_ready="3/4", worker_replicas=3, attempt=1)
        assert until_training(job, 3) == 0
        assert "training with 3 of 4 workers" in job.status()["message"]
        scale = ["get", "pdj", job.name, "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas}"]
        assert job.kubectl(*scale) == "4 3"

        set_room(operator, home, 2)
        appeared = time.monotonic()
        job.until(phase="Running", worker_ready="4/4", restarts=0, disruptions=0)
        assert time.monotonic() - appeared < 60, "it grows within a minute"
        assert until_training(job, 4) > 0, "it continues from the checkpoint"

        (tmp_path / "steps").write_text(str(last_step(tmp_path) + 200))
        doomed.kill()
        job.until(phase="Running", worker_ready="3/4")
        assert until_training(job, 3) > 0, "it continues from the checkpoint again"
        assert job.until(phase="Completed")["message"] == "all 3 workers succeeded"
    finally:
        print(
            job.kubectl("get", "events", "--sort-by=.lastTimestamp", "--field-selector=involvedObject.kind=PaddleJob")
        )
        if not doomed.alive:
            doomed.start()
            operator.wait_ready(doomed)
        for node in operator.nodes:
            set_room(operator, node.name, 0)
    accuracy = re.search(r"final accuracy=([\d.]+) untrained_accuracy=([\d.]+)", first_worker_log(job))
    assert accuracy, first_worker_log(job)
    assert float(accuracy[1]) > float(accuracy[2])
    attempts = sorted(tmp_path.glob("ranks.*"))
    sizes = [len(file.read_text().split()) for file in attempts]
    assert {3, 4} == set(sizes), sizes
    for file, size in zip(attempts, sizes, strict=True):
        assert sorted(file.read_text().split()) == [str(rank) for rank in range(size)], file
    events = job.kubectl("get", "events", "-o", "jsonpath={range .items[*]}{.reason}{'\\n'}{end}").split()
    assert {"ScaledDown", "ScaledUp"} <= set(events)
