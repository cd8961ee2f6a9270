"""The pod that is created for one replica: the user's template, and what training needs beside it."""

from __future__ import annotations

import copy
from typing import Any

from paddlejob import contract
from paddlejob.api.types import Intranet, Mode, PaddleJob, Role
from paddlejob.plan import environment, names, network
from paddlejob.plan.training import training_container

LOST_NODE_SECONDS = 60
NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

Manifest = dict[str, Any]


def pod_manifest(job: PaddleJob, role: Role, index: int, attempt: int, build: str, group: str = "") -> Manifest:
    template = copy.deepcopy(job.spec.roles[role].template)
    spec: Manifest = template["spec"]
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **names.labels(job, role, index)}
    labels[contract.LABEL_ATTEMPT] = str(attempt)
    metadata = names.metadata(job, names.pod(job, role, index), labels)
    metadata["annotations"] = {**(given.get("annotations") or {}), contract.ANNOTATION_BUILD: build}
    spec["restartPolicy"] = "Never"
    for container in spec["containers"]:
        container.pop("restartPolicy", None)
        container.pop("restartPolicyRules", None)
    if "serviceAccountName" not in spec:
        spec.setdefault("automountServiceAccountToken", False)
    _tolerate_lost_nodes(spec)
    _give_environment(training_container(template), job, role, index, attempt)
    if job.spec.intranet is Intranet.HOST:
        _use_host_network(spec, training_container(template), job, role, index, attempt)
    if group:
        spec["schedulerName"] = contract.VOLCANO_SCHEDULER
        metadata["annotations"][contract.ANNOTATION_VOLCANO_GROUP] = group
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _give_environment(container: Manifest, job: PaddleJob, role: Role, index: int, attempt: int) -> None:
    """The user's own variables win; the environment of the attempt comes first, so that its absence holds the start."""
    given = container.get("env") or []
    own = {one["name"] for one in given}
    made = [one for one in environment.of_pod(job, role, index, attempt) if one["name"] not in own]
    # $(NAME) is only replaced by what stands before it.
    first = [one for one in given if one["name"] in environment.REFERRED_TO]
    container["env"] = [*first, *made, *(one for one in given if one not in first)]
    shared = {"configMapRef": {"name": names.environment(job, attempt)}}
    container["envFrom"] = [shared, *(container.get("envFrom") or [])]
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")


def overridden(job: PaddleJob, role: Role) -> list[str]:
    """Variables of ours that the user's template sets itself."""
    given = {one["name"] for one in training_container(job.spec.roles[role].template).get("env") or []}
    addresses = {(one, index): "" for one, spec in job.spec.roles.items() for index in range(spec.replicas)}
    ours = {one["name"] for one in environment.of_pod(job, role, 0, 1)} | set(environment.of_attempt(job, 1, addresses))
    return sorted(given & ours)


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
    """The block of ports is declared, so that the scheduler puts no two pods with the same block on one node."""
    first = network.port(job, role, index, attempt)
    spec["hostNetwork"] = True
    spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    container["ports"] = (container.get("ports") or []) + [
        {"containerPort": port, "hostPort": port} for port in range(first, first + contract.PORTS_PER_POD)
    ]
    if job.mode is Mode.COLLECTIVE and "affinity" not in spec:
        spec["affinity"] = _one_worker_a_node(job)


def _one_worker_a_node(job: PaddleJob) -> Manifest:
    """Paddle's launcher counts nodes by distinct hosts, so two workers at one address would be taken for one."""
    return {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": names.labels(job, Role.WORKER)},
                }
            ]
        }
    }
