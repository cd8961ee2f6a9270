"""Workers of a parameter-server job come and go on a real cluster, while the others train."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from testbed.cluster import Cluster
from tests.e2e.test_failures import KILL
from tests.support.on_cluster import QUICK, Job, Object, eventually

IMAGE = "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1"
EPOCHS = 26
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"batch.paddlepaddle.org/role": "worker"}},
        }
    ]
}


def create(cluster: Cluster, namespace: str, name: str, server_node: str, epoch_seconds: float = 0.0) -> Job:
    """Two servers on one node, and three workers on three nodes."""
    values = {"EPOCHS": EPOCHS, "SAMPLES": 10_000, "OMP_NUM_THREADS": 1, "EPOCH_SECONDS": epoch_seconds}
    container = {
        "name": "paddle",
        "image": IMAGE,
        "env": [{"name": key, "value": str(value)} for key, value in values.items()],
    }

    def role(replicas: int, **pod: Any) -> Object:
        return {"replicas": replicas, "template": {"spec": {"containers": [container], **QUICK, **pod}}}

    spec = {
        "elastic": 1,
        "withGloo": 0,
        "ps": role(2, nodeSelector={"kubernetes.io/hostname": server_node}),
        "worker": role(3, **SPREAD),
    }
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"cleanPodPolicy": "Never", **spec},
    }
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(document))
    return Job(cluster, namespace, name)


class Workers:
    """The workers of a job, by what their logs tell."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def epochs(self, index: int) -> int:
        """The last epoch that a worker has finished; 0 if it has none."""
        found = re.findall(rf"^epoch (\d+)/\d+ worker {index} ", self.job.log(f"{self.job.name}-worker-{index}"), re.M)
        return int(found[-1]) if found else 0

    def node(self, index: int) -> str:
        return str(self.job.pods()[f"{self.job.name}-worker-{index}"]["spec"]["nodeName"])

    def uid(self, index: int) -> str:
        pod = self.job.pods().get(f"{self.job.name}-worker-{index}")
        return str(pod["metadata"]["uid"]) if pod else ""

    def train_while(self, others: tuple[int, ...], what: str, until: Any) -> None:
        """The others finish epochs while something happens, and after it."""
        pods, before = {one: self.uid(one) for one in others}, {one: self.epochs(one) for one in others}
        eventually(what, until)
        for one in others:
            eventually(f"worker {one} goes on", lambda one=one: self.epochs(one) > before[one])
        assert {one: self.uid(one) for one in others} == pods, "only the worker concerned has a new pod"


@pytest.mark.full
def test_workers_are_killed_drained_added_and_removed_while_the_others_train(operator: Cluster, cluster_namespace: str):
    server_node = operator.nodes[0].name
    calm = create(operator, cluster_namespace, "calm", server_node)
    calm.until(phase="Completed", attempt=1)
    undisturbed, _ = calm.final("auc")
    calm.kubectl("delete", "pdj", calm.name)
    job = create(operator, cluster_namespace, "lively", server_node, epoch_seconds=5.0)
    job.until(phase="Running", worker_ready="3/3", ps_ready="2/2")
    workers = Workers(job)
    eventually("all train", lambda: all(workers.epochs(index) >= 2 for index in range(3)))
    drained = next(one for one in (1, 2) if workers.node(one) not in (server_node, workers.node(0)))
    killed = 3 - drained

    _kill(operator, job, killed)
    job.until(restarts=1, disruptions=0, attempt=1)
    workers.train_while((0, drained), "the killed worker rejoins", lambda: _joined(job, killed))

    node = workers.node(drained)
    uid = workers.uid(drained)
    operator.kubectl("drain", node, "--ignore-daemonsets", "--force", f"--pod-selector={_selector(job)}")
    try:
        job.until(disruptions=1, restarts=1, attempt=1)
        rejoined = lambda: workers.uid(drained) not in ("", uid) and _joined(job, drained)  # noqa: E731
        workers.train_while((0, killed), "the drained worker rejoins elsewhere", rejoined)
        assert workers.node(drained) != node
    finally:
        operator.kubectl("uncordon", node)

    job.kubectl("scale", "pdj", job.name, "--replicas=4")
    workers.train_while((0, 1, 2), "a fourth worker trains", lambda: workers.epochs(3) >= 1)
    job.kubectl("scale", "pdj", job.name, "--replicas=3")
    workers.train_while((0, 1, 2), "it leaves again", lambda: not workers.uid(3))

    eventually("the first worker is done", lambda: "final " in job.log(f"{job.name}-worker-0"))
    job.until(attempt=1, restarts=1, disruptions=1)
    auc, untrained = job.final("auc")
    assert auc > untrained + 0.1
    assert auc > undisturbed - 0.03, "as good as an undisturbed run"
    log = job.log(f"{job.name}-worker-0")
    assert [int(one) for one in re.findall(r"^epoch (\d+)/", log, re.M)] == [*range(1, EPOCHS + 1)], "it never stopped"
    events = job.kubectl("get", "events")
    assert all(reason in events for reason in ("WorkerReplaced", "WorkersAdded", "WorkersRemoved"))
    job.kubectl("delete", "pdj", job.name)


def _joined(job: Job, worker: int) -> bool:
    return f"worker {worker} joins" in job.log(f"{job.name}-worker-{worker}")


def _selector(job: Job) -> str:
    return f"batch.paddlepaddle.org/job={job.name}"


def _kill(cluster: Cluster, job: Job, worker: int) -> None:
    """kill -9 on the pod's node, which sees only its own processes."""
    pod = f"{job.name}-worker-{worker}"
    node = next(one for one in cluster.nodes if one.name == job.pods()[pod]["spec"]["nodeName"])
    node.run(sys.executable, "-c", KILL % pod)
