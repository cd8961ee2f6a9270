"""A topology on real nodes: pods stay within one zone, a zone that is too small is left, and ranks follow the nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
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
    minimum: int | None = None,
    **container: Any,
) -> Job:
    """With a `minimum` of pods it is a gang."""
    paddle = {"name": "paddle", "resources": {"limits": {SLOT: 1}}, **container}
    spec = {
        "scheduleTimeoutSeconds": patience,
        "cleanPodPolicy": "Never",
        "schedulingPolicy": {"topology": topology} | ({"minAvailable": minimum} if minimum else {}),
        "worker": {"replicas": workers, "template": {"spec": {"containers": [paddle], **QUICK}}},
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
    assert set(reasons) == {"HalfPlaced"}, reasons
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
def test_a_gang_of_volcano_finds_the_zone_in_which_all_of_it_fits(
    operator: Cluster, volcano: Volcano, cluster_namespace: str, zones: dict[str, str]
):
    set_room(operator, 1, 1, 1)
    job = create(operator, cluster_namespace, "gang", 2, {"required": ZONE}, minimum=2, **SLEEPS)
    job.until(phase="Running", worker_ready="2/2")
    assert {pod["spec"]["schedulerName"] for pod in job.pods().values()} == {"volcano"}
    assert [zones[node] for node in nodes_of(job).values()] == ["east", "east"]
    job.kubectl("delete", "pdj", job.name)


@pytest.mark.full
def test_neighbours_in_rank_are_neighbours_in_the_network_and_train_together(
    operator: Cluster, cluster_namespace: str, zones: dict[str, str]
):
    """There is room in the east, then in the west, then in the east again, so that the indexes are not in order."""
    steps = [{"name": "STEPS", "value": "5"}, {"name": "OUTPUT_DIR", "value": "/tmp/model"}]
    train = ["sh", "-c", f"{SHOW}; exec python3 train.py"]
    job = create(
        operator, cluster_namespace, "ring", 3, {"preferred": ZONE}, image="paddlejob/checkpoint:v1", command=train,
        env=steps,
    )  # fmt: skip
    for placed, slots in enumerate(((1, 0, 0), (1, 0, 1), (1, 1, 1)), start=1):
        set_room(operator, *slots)
        eventually(f"{placed} workers have a node", lambda placed=placed: len(nodes_of(job)) == placed)
    job.until(phase="Completed")
    shown = {name: show(job.log(name)) for name in job.pods()}
    by_rank = sorted(shown, key=lambda name: shown[name][0])
    assert [shown[name][0] for name in by_rank] == [0, 1, 2]
    assert by_rank[0] == "ring-worker-0"
    nodes = nodes_of(job)
    order = [zones[nodes[name]] for name in by_rank]
    assert len(list(groupby(order))) == 2, f"{order}: both workers of the east are next to each other"
    for rank, name in enumerate(by_rank):
        assert shown[name][2].split(",")[rank] == shown[name][1], "its own endpoint, as the others see it"
    print(f"ranks by worker: {by_rank}; status.worker.ranks: {job.status()['worker'].get('ranks', '')!r}")


def show(log: str) -> tuple[int, str, str]:
    found = re.search(r"rank=(\d+) self=(\S+) all=(\S+)", log)
    assert found, log
    return int(found[1]), found[2], found[3]
