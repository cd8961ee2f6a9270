"""The ranks of workers: with a topology, neighbours in rank are neighbours in the network.

Collective communication runs in rings and trees over the ranks, so most of it is between neighbours. A scheduler places
pods in any order, so ranks are assigned when the start barrier opens and every pod has its node. They are recorded in
the status: an environment that has to be created again holds the same ranks, whatever labels the nodes have by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paddlejob.api.types import PaddleJob, Role, Topology
from paddlejob.plan import indexes
from paddlejob.plan.size import is_resizable
from paddlejob.plan.world import UNSCHEDULABLE, Pod


def topology_of(job: PaddleJob) -> Topology | None:
    return job.spec.schedulingPolicy.topology if job.spec.schedulingPolicy else None


def follow_nodes(job: PaddleJob) -> bool:
    """Whether ranks depend on where pods run. Workers of parameter servers do not talk to each other."""
    return topology_of(job) is not None and set(job.spec.roles) == {Role.WORKER}


def are_published(job: PaddleJob) -> bool:
    """Whether workers learn their ranks when the start barrier opens. Otherwise the rank is the index."""
    return is_resizable(job) or follow_nodes(job)


def record(order: list[int]) -> str:
    """As the status has it: empty if the ranks are in the order of the indexes."""
    return "" if order == sorted(order) else indexes.format_order(order)


def in_order(workers: Iterable[Pod], domains: Mapping[str, str]) -> list[int]:
    """Indexes by domain and node; these are in the order of their first workers.

    So the first worker keeps the first rank: it is the master, and its log shows the progress of the job.
    """
    ordered = sorted(workers, key=lambda pod: pod.index)
    first_in_domain: dict[str, int] = {}
    first_on_node: dict[str, int] = {}
    for pod in ordered:
        first_in_domain.setdefault(domains.get(pod.node, ""), pod.index)
        first_on_node.setdefault(pod.node, pod.index)
    ordered.sort(key=lambda pod: (first_in_domain[domains.get(pod.node, "")], first_on_node[pod.node]))
    return [pod.index for pod in ordered]


def nodes_to_look_up(job: PaddleJob, pods: Iterable[Pod]) -> list[str]:
    """The nodes whose domains decide now. Each costs a request, so there are none while a job trains."""
    topology, status = topology_of(job), job.status
    if topology is None or 0 < status.attempt == status.publishedAttempt:
        return []
    current = [pod for pod in pods if pod.attempt == max(1, status.attempt) and not pod.deleting]
    nodes = [pod.node for pod in current if pod.node]
    if topology.required:
        # All are in the same domain. Which one matters if not all pods fit there.
        return nodes[:1] if any(pod.reason == UNSCHEDULABLE for pod in current) else []
    return nodes if follow_nodes(job) and len(nodes) == len(current) else []
