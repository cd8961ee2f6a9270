"""The manifest of a replica's pod: the user's template plus what training needs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.api.template import training_container
from paddlejob.api.types import Intranet, Mode, PaddleJob, Role, Topology
from paddlejob.plan import names, ranks
from paddlejob.plan.manifests import affinity, agent, environment, network
from paddlejob.plan.manifests.metadata import labels, metadata
from paddlejob.plan.workload import PodUpdate
from paddlejob.plan.world import AgentChannel

LOST_NODE_SECONDS = 3
"""The node controller has waited 40 s by default before it calls a node unreachable; the whole job stands still."""
NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

Manifest = dict[str, Any]


@dataclass(frozen=True)
class PodSource:
    """What the manifest of a pod is built from, when it is needed."""

    job: PaddleJob
    role: Role
    index: int
    attempt: int
    build: str
    group: str = ""
    replacement: int = 0
    peers: environment.Hosts | None = None
    update: PodUpdate | None = None
    channel: AgentChannel | None = None
    """Where its agent reaches the operator; None if it has none."""

    def __call__(self) -> Manifest:
        made = pod_manifest(
            self.job, self.role, self.index, self.attempt, self.build, self.group, self.replacement, self.peers
        )
        if self.channel:
            agent.add_agent(made, self.job, self.attempt, self.channel)
        topology, update = ranks.topology_of(self.job), self.update
        if topology and not (update and update.scheduling_gates):
            affinity.keep_together(made["spec"], self.job, topology)
        return add_update(made, update, topology) if update else made


def pod_manifest(
    job: PaddleJob,
    role: Role,
    index: int,
    attempt: int,
    build: str,
    group: str = "",
    replacement: int = 0,
    peers: environment.Hosts | None = None,
) -> Manifest:
    """`peers` are the hosts of the others, if the pod joins while they train."""
    template = copy.deepcopy(job.spec.roles[role].template)
    spec: Manifest = template["spec"]
    given = template.get("metadata") or {}
    marked = {**(given.get("labels") or {}), **labels(job, role, index), contract.LABEL_ATTEMPT: str(attempt)}
    annotations = {**(given.get("annotations") or {}), contract.ANNOTATION_BUILD: build}
    annotations.pop(contract.ANNOTATION_WAKE, None)
    annotations.pop(contract.ANNOTATION_REPLACEMENT, None)
    if replacement:
        annotations[contract.ANNOTATION_REPLACEMENT] = str(replacement)
    spec["restartPolicy"] = "Never"
    for container in spec["containers"]:
        container.pop("restartPolicy", None)
        container.pop("restartPolicyRules", None)
    if not (spec.get("serviceAccountName") or spec.get("serviceAccount")):
        spec.setdefault("automountServiceAccountToken", False)
    _tolerate_lost_nodes(spec)
    _end_on_signals(spec)
    trainer = training_container(spec["containers"])
    annotations[contract.ANNOTATION_TRAINING_CONTAINER] = trainer["name"]
    made = environment.of_pod(job, role, index, attempt)
    if peers is not None:
        made += environment.of_joining(job, index, attempt, peers)
    _add_environment(trainer, job, attempt, made)
    if job.spec.intranet is Intranet.SERVICE:
        spec |= {"hostname": names.hostname(job, role, index, attempt), "subdomain": names.service(job)}
    if job.spec.intranet is Intranet.HOST:
        _use_host_network(spec, trainer, job, role, index, attempt)
    affinity.avoid_nodes(spec, job.status.avoidedNodes)
    if group:
        spec["schedulerName"] = contract.VOLCANO_SCHEDULER
        annotations[contract.ANNOTATION_VOLCANO_GROUP] = group
    about = metadata(job, names.pod(job, role, index), marked) | {"annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def add_update(pod: Manifest, update: PodUpdate, topology: Topology | None = None) -> Manifest:
    """Add what Kueue assigned to the pod, so that it runs where its quota is."""
    about, spec = pod["metadata"], pod["spec"]
    about["labels"] = {**update.labels, **about["labels"]}
    about["annotations"] = {**update.annotations, **about["annotations"]}
    if update.node_selector:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **update.node_selector}
    if update.tolerations:
        given = spec.get("tolerations") or []
        spec["tolerations"] = [*given, *(dict(one) for one in update.tolerations if one not in given)]
    if update.scheduling_gates:
        if not about["annotations"].keys() & set(contract.TOPOLOGY_REQUESTS.values()):
            about["annotations"] |= topology_request(topology) or {contract.TOPOLOGY_UNCONSTRAINED: "true"}
        gates = [{"name": name} for name in update.scheduling_gates]
        spec["schedulingGates"] = [*(spec.get("schedulingGates") or []), *gates]
    return pod


def topology_request(topology: Topology | None) -> dict[str, str]:
    """The annotation by which Kueue's own integrations ask for a topology."""
    if topology is None:
        return {}
    kind, label = ("required", topology.required) if topology.required else ("preferred", topology.preferred)
    return {contract.TOPOLOGY_REQUESTS[kind]: label or ""}


def _add_environment(container: Manifest, job: PaddleJob, attempt: int, variables: list[Manifest]) -> None:
    """Variables that the user sets take precedence. Without the ConfigMap of the attempt the container cannot start."""
    given = container.get("env") or []
    own = {one["name"] for one in given}
    made = [one for one in variables if one["name"] not in own]
    # The kubelet expands $(NAME) only if NAME is defined earlier in the list.
    first = [one for one in given if one["name"] in environment.REFERRED_TO]
    container["env"] = [*first, *made, *(one for one in given if one not in first)]
    shared = {"configMapRef": {"name": names.environment(job, attempt)}}
    container["envFrom"] = [shared, *(container.get("envFrom") or [])]
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")


def overridden(job: PaddleJob, role: Role) -> list[str]:
    """Variables of paddlejob that the user's template sets itself; how Python buffers its output is its own choice."""
    containers = job.spec.roles[role].template["spec"]["containers"]
    given = {one["name"] for one in training_container(containers).get("env") or []}
    shared = environment.of_attempt(job, 1, dict.fromkeys(job.spec.slots, "")).keys() - {contract.ENV_UNBUFFERED}
    return sorted(given & ({one["name"] for one in environment.of_pod(job, role, 0, 1)} | shared))


def _end_on_signals(spec: Manifest) -> None:
    """Process 1 ignores signals that it does not handle: SIGTERM, and SIGABRT of a broken connection to a peer.

    An image whose own entry point runs may need to be process 1, and several containers would see each other's secrets.
    """
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    alone = len(spec["containers"]) == 1 and not sidecars
    if alone and spec["containers"][0].get("command") and not spec.get("hostPID"):
        spec.setdefault("shareProcessNamespace", True)


def _tolerate_lost_nodes(spec: Manifest) -> None:
    given = spec.get("tolerations") or []
    covered = {one.get("key") for one in given if one.get("effect") in (None, "", "NoExecute")}
    spec["tolerations"] = given + [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_SECONDS}
        for taint in NODE_TAINTS
        if taint not in covered and not covered & {None, ""}
    ]


def _use_host_network(
    spec: Manifest, container: Manifest, job: PaddleJob, role: Role, index: int, attempt: int
) -> None:
    """Declare the block of ports, so that the scheduler keeps pods with the same block on different nodes."""
    first = network.port(job, role, index, attempt)
    spec["hostNetwork"] = True
    spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    container["ports"] = (container.get("ports") or []) + [
        {"containerPort": port, "hostPort": port} for port in range(first, first + contract.PORTS_PER_POD)
    ]
    if job.mode is Mode.COLLECTIVE and "affinity" not in spec:
        affinity.separate_workers(spec, job)
