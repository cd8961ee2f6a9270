"""The status of a cluster and its nodes (`pdj aws status`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paddlejob.cloud.aws.access.kubeconfig import find_cluster
from paddlejob.cloud.aws.access.storage import dns_name
from paddlejob.cloud.aws.capacity import instances_of
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.stack import StackState


@dataclass(frozen=True)
class Node:
    name: str
    id: str
    state: str
    type: str
    zone: str

    def line(self) -> str:
        return f"{self.name:<46} {self.id:<20} {self.state:<13} {self.type:<14} {self.zone}"


@dataclass(frozen=True)
class ClusterStatus:
    cluster_name: str
    region: str
    stack: str
    controller_dns_name: str = ""
    kubernetes_version: str = ""
    api_name: str = ""
    nodes_wanted: int | None = None
    """None if EKS Auto Mode decides it."""
    nodes: tuple[Node, ...] = ()
    problems: tuple[str, ...] = ()
    file_system: str = ""
    bucket: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON and YAML, with names such as clusterName."""
        plain = {**asdict(self), "nodes": [asdict(node) for node in self.nodes], "problems": [*self.problems]}
        return {_camel(name): value for name, value in plain.items()}

    def lines(self) -> list[str]:
        running = sum(node.state == "running" for node in self.nodes)
        facts = {
            "Cluster Name": self.cluster_name,
            "Controller DNS Name": self.controller_dns_name or "pending",
            "Stack": self.stack,
            "Region": self.region,
            "Kubernetes": self.kubernetes_version,
            "DNS name in the VPC": self.api_name,
            "EFS": self.file_system and dns_name(self.file_system, self.region),
            "S3 bucket": self.bucket and f"s3://{self.bucket}",
            "Nodes": f"{running} running" if self.nodes_wanted is None else f"{running} of {self.nodes_wanted} running",
        }
        lines = [f"{name + ':':<24}{value}" for name, value in facts.items() if value]
        lines += [f"  {node.line()}" for node in self.nodes]
        return [*lines, *(f"Problem: {problem}" for problem in self.problems)]


def status(aws: Aws, state: StackState, outputs: Mapping[str, str]) -> ClusterStatus:
    """Query EKS and EC2. A stack whose cluster does not exist yet is not an error. `outputs` are of both stacks."""
    cluster = find_cluster(aws, state.name) or {}
    auto = bool(cluster.get("computeConfig", {}).get("enabled"))
    group = _node_group(aws, state.name, outputs["NodeGroup"]) if cluster and "NodeGroup" in outputs else {}
    return ClusterStatus(
        cluster_name=state.name,
        region=aws.region,
        stack=state.status,
        controller_dns_name=cluster.get("endpoint", "").removeprefix("https://").rstrip("/"),
        kubernetes_version=cluster.get("version", ""),
        api_name=outputs.get("ApiName", ""),
        nodes_wanted=None if auto else group.get("scalingConfig", {}).get("desiredSize", 0),
        nodes=_nodes(aws, state.name) if cluster else (),
        problems=tuple(issue["message"] for issue in group.get("health", {}).get("issues", [])),
        file_system=outputs.get("FileSystemId", ""),
        bucket=outputs.get("BucketName", ""),
    )


def _node_group(aws: Aws, cluster: str, group: str) -> dict[str, Any]:
    """Return the node group; an empty dictionary while it is replaced or deleted."""
    names = {"clusterName": cluster, "nodegroupName": group}
    found = aws.find("eks", "describe_nodegroup", "ResourceNotFoundException", **names)
    return found["nodegroup"] if found else {}


def _nodes(aws: Aws, cluster: str) -> tuple[Node, ...]:
    states = "pending,running,stopping,shutting-down"
    nodes = [
        Node(
            name=instance.get("PrivateDnsName") or instance["InstanceId"],
            id=instance["InstanceId"],
            state=instance["State"]["Name"],
            type=instance["InstanceType"],
            zone=instance["Placement"]["AvailabilityZone"],
        )
        for instance in instances_of(aws, cluster, {"instance-state-name": states})
    ]
    return tuple(sorted(nodes, key=lambda node: node.name))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join({"dns": "DNS"}.get(part, part.capitalize()) for part in rest)
