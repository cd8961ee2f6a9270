"""A topology on real nodes: pods stay within one zone, a zone that is too small is left, and ranks follow the nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.addons.volcano import Volcano
from testbed.cluster import Cluster
from tests.support.on_cluster import QUICK, Job, eventually

SLOT = "example.com/slot"
"""An extended resource of which each worker requests one: it decides how many workers fit, whatever the machine has."""
ZONE = "example.com/zone"
Object = dict[str, Any]
SLEEPS = {"image": "busybox", "command": ["sleep", "3600"]}
SHOW = "echo rank=$PADDLE_TRAINER_ID self=$PADDLE_CURRENT_ENDPOINT all=$PADDLE_TRAINER_ENDPOINTS"


def set_room(cluster: Cluster, *slots: int) -> None:
    """How many workers fit on each node."""
    for node, count in zip(cluster.nodes, slots, strict=True):
        has = {SLOT: str(count)}
        patch = json.dumps({"status": {"capacity": has, "allocatable": has}})
        cluster.kubectl("patch", "node", node.name, "--subresource=status", "--type=merge", "-p", patch)


@pytest.fixture
def zones(operator: Cluster) -> Iterator[dict[str, str]]:
    """Two nodes in the east and one in the west, with room for no worker yet."""
    found = {node.name: zone for node, zone in zip(operator.nodes, ("east", "east", "west"), strict=True)}
    for node, zone in found.items():
        operator.kubectl("label", "node", node, f"{ZONE}={zone}")
    set_room(operator, 0, 0, 0)
    try:
        yield found
    finally:
        for node in found:
            operator.kubectl("label", "node", node, f"{ZONE}-")
        set_room(operator, 0, 0, 0)


def create(
    cluster: Cluster,
    namespace: str,
    name: str,
    workers: int,
    topology: Object,
    *,
    patience: int = 60,
    scheduler: str = "default-scheduler",
    policy: Object | None = None,
    **container: Any,
) -> Job:
    paddle = {"name": "paddle", "resources": {"limits": {SLOT: 1}}, **container}
    pod = {"containers": [paddle], "schedulerName": scheduler, **QUICK}
    spec = {
        "scheduleTimeoutSeconds": patience,
        "cleanPodPolicy": "Never",
        "schedulingPolicy": {"topology": topology, **(policy or {})},
        "worker": {"replicas": workers, "template": {"spec": pod}},
    }
    document = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}}
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(document | {"spec": spec}))
    return Job(cluster, namespace, name)


def nodes_of(job: Job) -> dict[str, str]:
    """The nodes of the pods that have one."""
    return {name: node for name, pod in job.pods().items() if (node := pod["spec"].get("nodeName"))}


@pytest.mark.full
def test_a_job_that_fits_in_no_zone_waits_with_the_reason_and_moves_to_one_that_gets_room(
    operator: Cluster, cluster_namespace: str, zones: dict[str, str]
):
    set_room(operator, 0, 0, 1)
    job = create(operator, cluster_namespace, "close", 2, {"required": ZONE}, patience=4, **SLEEPS)
    eventually("the first pod has chosen the west", lambda: {zones[one] for one in nodes_of(job).values()} == {"west"})
    status = job.until(reason="Unschedulable")
    assert f"do not fit on any node with the same {ZONE}, which schedulingPolicy.topology requires" in status["message"]
    assert "nodes are available" in status["message"], "what the scheduler says"
    condition = next(one for one in status["conditions"] if one["type"] == "PodsScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")

    set_room(operator, 1, 1, 1)
    status = job.until(phase="Running", worker_ready="2/2", restarts=0, disruptions=0)
    assert [zones[node] for node in nodes_of(job).values()] == ["east", "east"]
    assert status["attempt"] > 1 and "avoidedDomains" not in status
    reasons = [one["reason"] for one in status["pastAttempts"]]
    assert set(reasons) == {"PartiallyScheduled"}, reasons
    job.kubectl("delete", "pdj", job.name)


@pytest.mark.full
def test_workers_are_kept_in_one_zone_although_there_is_more_room_elsewhere(
    operator: Cluster, cluster_namespace: str, zones: dict[str, str]
):
    """Without a topology the scheduler spreads them over the three nodes."""
    set_room(operator, 3, 3, 3)
    job = create(operator, cluster_namespace, "dense", 3, {"required": ZONE}, **SLEEPS)
    job.until(phase="Running", worker_ready="3/3", attempt=1)
    assert len({zones[node] for node in nodes_of(job).values()}) == 1
    job.kubectl("delete", "pdj", job.name)


@pytest.mark.full
def test_a_gang_of_volcano_holds_no_node_while_no_zone_fits_and_starts_in_one_that_does(
    operator: Cluster, volcano: Volcano, cluster_namespace: str, zones: dict[str, str]
):
    set_room(operator, 1, 0, 1)
    gang = {"scheduler": "volcano", "policy": {"queue": "default"}}
    job = create(operator, cluster_namespace, "gang", 2, {"required": ZONE}, **gang, **SLEEPS)
    status = job.until(phase="Pending", reason="GangNotAdmitted")
    assert "nodes are unavailable" in status["message"] or "nodes are available" in status["message"]
    assert nodes_of(job) == {}
    set_room(operator, 1, 1, 1)
    status = job.until(phase="Running", worker_ready="2/2", attempt=1)
    assert [zones[node] for node in nodes_of(job).values()] == ["east", "east"]
    job.kubectl("delete", "pdj", job.name)


@pytest.mark.full
def test_neighbours_in_rank_are_neighbours_in_the_network_and_train_together(
    operator: Cluster, cluster_namespace: str, zones: dict[str, str]
):
    """The test itself is the scheduler: worker 1 is alone in the west."""
    set_room(operator, 1, 1, 1)
    steps = [{"name": "STEPS", "value": "5"}, {"name": "OUTPUT_DIR", "value": "/tmp/model"}]
    command = ["sh", "-c", f"{SHOW}; exec python3 train.py"]
    train = {"image": "paddlejob/checkpoint:v1", "command": command, "env": steps}
    job = create(operator, cluster_namespace, "ring", 3, {"preferred": ZONE}, scheduler="by-hand", **train)
    eventually("all pods exist", lambda: len(job.pods()) == 3)
    (first, second), (alone,) = by_zone(zones)
    for index, node in enumerate((first, alone, second)):
        bind(job, f"ring-worker-{index}", node)
    status = job.until(phase="Completed")
    assert status["worker"]["ranks"] == "0,2,1"
    shown = {name: show(job.log(name)) for name in job.pods()}
    assert {name: rank for name, (rank, _, _) in shown.items()} == {
        "ring-worker-0": 0, "ring-worker-1": 2, "ring-worker-2": 1,
    }  # fmt: skip
    for rank, own, listed in shown.values():
        assert listed.split(",")[rank] == own, "its own endpoint, as the others see it"


def by_zone(zones: dict[str, str]) -> list[list[str]]:
    return [[node for node, zone in zones.items() if zone == wanted] for wanted in ("east", "west")]


def bind(job: Job, pod: str, node: str) -> None:
    """What a scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    path = f"/api/v1/namespaces/{job.namespace}/pods/{pod}/binding"
    job.cluster.kubectl("create", f"--raw={path}", "-f", "-", input=json.dumps(binding))


def show(log: str) -> tuple[int, str, str]:
    found = re.search(r"rank=(\d+) self=(\S+) all=(\S+)", log)
    assert found, log
    return int(found[1]), found[2], found[3]
