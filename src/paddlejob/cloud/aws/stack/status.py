"""The status of a cluster and its nodes (`pdj aws status`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paddlejob.cloud.aws.access.kubeconfig import find_cluster
from paddlejob.cloud.aws.access.storage import dns_name
from paddlejob.cloud.aws.errors import AwsError
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
    nodes_wanted: int = 0
    nodes: tuple[Node, ...] = ()
    problems: tuple[str, ...] = ()
    file_system: str = ""
    bucket: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {_camel(name): value for name, value in _plain(asdict(self)).items()}

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
            "Nodes": f"{running} of {self.nodes_wanted} running",
        }
        lines = [f"{name + ':':<24}{value}" for name, value in facts.items() if value]
        lines += [
            f"  {node.name:<46} {node.id:<20} {node.state:<13} {node.type:<14} {node.zone}" for node in self.nodes
        ]
        return [*lines, *(f"Problem: {problem}" for problem in self.problems)]


def status(aws: Aws, state: StackState, outputs: Mapping[str, str]) -> ClusterStatus:
    """Query EKS and EC2. A stack whose cluster does not exist yet is not an error. `outputs` are of both stacks."""
    cluster = find_cluster(aws, state.name) or {}
    group = _node_group(aws, state.name, outputs["NodeGroup"]) if cluster and "NodeGroup" in outputs else {}
    return ClusterStatus(
        cluster_name=state.name,
        region=aws.region,
        stack=state.status,
        controller_dns_name=cluster.get("endpoint", "").removeprefix("https://").rstrip("/"),
        kubernetes_version=cluster.get("version", ""),
        api_name=outputs.get("ApiName", ""),
        nodes_wanted=group.get("scalingConfig", {}).get("desiredSize", 0),
        nodes=_nodes(aws, state.name) if cluster else (),
        problems=tuple(issue["message"] for issue in group.get("health", {}).get("issues", [])),
        file_system=outputs.get("FileSystemId", ""),
        bucket=outputs.get("BucketName", ""),
    )


def _node_group(aws: Aws, cluster: str, group: str) -> dict[str, Any]:
    try:
        answer = aws.call("eks", "describe_nodegroup", clusterName=cluster, nodegroupName=group)
    except AwsError as error:
        if error.code == "ResourceNotFoundException":  # being replaced or deleted
            return {}
        raise
    found: dict[str, Any] = answer["nodegroup"]
    return found


def _nodes(aws: Aws, cluster: str) -> tuple[Node, ...]:
    reservations = aws.items(
        "ec2",
        "describe_instances",
        "Reservations",
        Filters=[
            {"Name": "tag:eks:cluster-name", "Values": [cluster]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "shutting-down"]},
        ],
    )
    nodes = [
        Node(
            name=instance.get("PrivateDnsName") or instance["InstanceId"],
            id=instance["InstanceId"],
            state=instance["State"]["Name"],
            type=instance["InstanceType"],
            zone=instance["Placement"]["AvailabilityZone"],
        )
        for reservation in reservations
        for instance in reservation["Instances"]
    ]
    return tuple(sorted(nodes, key=lambda node: node.name))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join({"dns": "DNS"}.get(part, part.capitalize()) for part in rest)


def _plain(value: Any) -> Any:
    """Convert tuples to lists for YAML and JSON."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple | list) else value
