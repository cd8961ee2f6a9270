"""Faults of nodes and of what runs on them. Each is undone after a few seconds."""

from __future__ import annotations

import time

from tools.chaos.faults.hit import Fault, Hit, works
from tools.chaos.ledger import DISRUPTION
from tools.chaos.stage import Stage

LONG_ENOUGH = 15
"""The node controller needs 8 s to notice, and pods of the population leave 3 s later."""


def node_killed(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    node.kill()
    time.sleep(LONG_ENOUGH)
    # The API server may know pods of the dead node as failed once its kubelet is back.
    stage.blame(DISRUPTION)
    node.start()
    return Hit(node.name, works(stage))


def node_cut(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    node.cut()
    time.sleep(stage.random.choice([3, LONG_ENOUGH]))
    node.mend()
    return Hit(node.name, works(stage))


def node_drained(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    stage.kubectl(
        *["drain", node.name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=20s"], check=False
    )
    stage.kubectl("uncordon", node.name, check=False)
    return Hit(node.name, works(stage))


def node_tainted(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    stage.kubectl("taint", "node", node.name, "chaos=yes:NoExecute", check=False)
    time.sleep(5)
    stage.kubectl("taint", "node", node.name, "chaos-", check=False)
    return Hit(node.name, works(stage))


def kubelet_killed(stage: Stage) -> Hit | None:
    return _service_killed(stage, "kubelet")


def containerd_killed(stage: Stage) -> Hit | None:
    # Containers go on under their shims.
    return _service_killed(stage, "containerd")


def _service_killed(stage: Stage, name: str) -> Hit | None:
    node = stage.a_node()
    node.run("pkill", "-KILL", "-x", name, check=False)
    return Hit(f"on {node.name}", works(stage))


OF_NODES: tuple[Fault, ...] = (
    node_killed, node_cut, node_drained, node_tainted, kubelet_killed, containerd_killed,
)  # fmt: skip
