"""Faults of nodes and of what runs on them. Each is undone after a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from testbed.nodes.node import Node
from tools.chaos.faults.hit import Fault, Hit, works
from tools.chaos.ledger import DISRUPTION
from tools.chaos.stage import Stage

NOTICED = 40.0
"""Seconds until the node controller must have noticed a lost node; it needs 8 s on an idle machine."""
EVICTED = 5
"""The pods of the population leave a lost node after 3 s."""
REPLACED = 50
"""Pods that cannot be stopped are replaced after 30 s, while their processes go on on the lost node."""

KUBELET_PORT = "10250"
UNREADABLE = 35


def node_killed(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    node.kill()
    _wait_until_lost(stage, node)
    time.sleep(EVICTED)
    # The API server may know pods of the dead node as failed once its kubelet is back.
    stage.blame(DISRUPTION)
    node.start()
    return Hit(node.name, _ready(stage, node))


def node_cut(stage: Stage) -> Hit | None:
    """For a moment, until its pods are evicted, or until they are replaced although they still run."""
    node, seconds = stage.a_node(), stage.random.choice([0, EVICTED, REPLACED])
    stage.blame(DISRUPTION)
    node.cut()
    if seconds:
        _wait_until_lost(stage, node)
    time.sleep(seconds or 3)
    node.mend()
    return Hit(f"{node.name} {f'and lost for {seconds} s' if seconds else 'for 3 s'}", _ready(stage, node))


def _wait_until_lost(stage: Stage, node: Node) -> None:
    deadline = time.monotonic() + NOTICED
    while node.name in stage.ready_nodes() and time.monotonic() < deadline:
        time.sleep(1)


def _ready(stage: Stage, node: Node) -> Callable[[], bool]:
    return lambda: node.name in stage.ready_nodes()


def node_drained(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    stage.kubectl(
        *["drain", node.name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=20s"], check=False
    )
    stage.kubectl("uncordon", node.name, check=False)
    return Hit(node.name, _ready(stage, node))


def node_tainted(stage: Stage) -> Hit | None:
    node = stage.a_node()
    stage.blame(DISRUPTION)
    stage.kubectl("taint", "node", node.name, "chaos=yes:NoExecute", check=False)
    time.sleep(5)
    stage.kubectl("taint", "node", node.name, "chaos-", check=False)
    return Hit(node.name, _ready(stage, node))


def kubelet_killed(stage: Stage) -> Hit | None:
    return _service_killed(stage, "kubelet")


def containerd_killed(stage: Stage) -> Hit | None:
    # Containers go on under their shims.
    return _service_killed(stage, "containerd")


def _service_killed(stage: Stage, name: str) -> Hit | None:
    node = stage.a_node()
    node.restart(name)
    return Hit(f"on {node.name}", works(stage))


def logs_unreadable(stage: Stage) -> Hit | None:
    """Nobody can read logs of a node's pods, for longer than the job with stallSeconds may be silent."""
    node, seconds = stage.a_node(), stage.random.choice([5, UNREADABLE])
    rule = ("INPUT", "-p", "tcp", "--dport", KUBELET_PORT, "-j", "DROP")
    node.run("iptables", "-I", *rule)
    time.sleep(seconds)
    node.run("iptables", "-D", *rule, check=False)
    return Hit(f"on {node.name} for {seconds} s", works(stage))


OF_NODES: tuple[Fault, ...] = (
    node_killed, node_cut, node_drained, node_tainted, kubelet_killed, containerd_killed, logs_unreadable,
)  # fmt: skip
