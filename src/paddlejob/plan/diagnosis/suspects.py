"""Nodes on which this job failed alone: twice on the same node, and the next attempts avoid it.

A failure is alone if the pods that failed by themselves were all on one node. Workers that abort because a peer died do
not count, and neither does a program that used too much: out of memory, or an eviction for its usage. The only pod of
a job always fails alone, which says nothing about its node.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.plan.snapshot import Snapshot
from paddlejob.plan.world import Pod, PodPhase

MOST_NODES = 4
"""Nodes of each kind that are remembered; with more, the oldest is forgotten."""
PEER_DIED = 250
"""The exit status of Paddle's launcher when a peer died."""
OWN_REASONS = ("OOMKilled", "Evicted")


@dataclass(frozen=True)
class Blame:
    suspects: tuple[str, ...]
    """Nodes on which the job failed alone once."""
    avoided: tuple[str, ...]
    message: str = ""
    """That a node is avoided from now on; empty if none is new."""


def blame(s: Snapshot) -> Blame:
    """The suspect and the avoided nodes, with the failure of the current attempt."""
    node, suspects, avoided = _failed_alone(s), s.status.suspectNodes, s.status.avoidedNodes
    if not node or node in avoided:
        return Blame(suspects, avoided)
    if node not in suspects:
        return Blame((*suspects, node)[-MOST_NODES:], avoided)
    message = (
        f"pods of this job failed twice on node {node} and nowhere else at the time; the next attempts avoid it if "
        f"they can. Check the node (kubectl describe node {node}), and cordon it if it is broken"
    )
    return Blame(tuple(one for one in suspects if one != node), (*avoided, node)[-MOST_NODES:], message)


def _failed_alone(s: Snapshot) -> str:
    """The node of all pods that failed by themselves; empty if there is none or more than one."""
    if s.world.one_machine or not s.published or len(s.slots) == 1:
        return ""
    failed = [pod for pod in s.current.values() if pod.phase is PodPhase.FAILED and not pod.disrupted]
    own = [pod for pod in failed if pod.exit_code != PEER_DIED] or failed
    nodes = {pod.node for pod in own}
    return nodes.pop() if len(nodes) == 1 and not any(map(_is_the_programs, own)) else ""


def _is_the_programs(pod: Pod) -> bool:
    return pod.reason in OWN_REASONS
