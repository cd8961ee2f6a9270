"""Helpers that query AWS directly, set the status of a stack, and edit cluster.yaml."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import boto3
from moto.cloudformation import cloudformation_backends


@functools.cache
def client(service: str) -> Any:
    return boto3.client(service, region_name="us-west-2")


def outputs() -> dict[str, str]:
    """The outputs of both stacks."""
    stacks = client("cloudformation").describe_stacks()["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for stack in stacks for output in stack["Outputs"]}


def inventory() -> dict[str, int]:
    """Count every kind of resource that a cluster is made of."""
    ec2 = client("ec2")
    return {
        "stacks": len(client("cloudformation").describe_stacks()["Stacks"]),
        "clusters": len(client("eks").list_clusters()["clusters"]),
        "vpcs": len(ec2.describe_vpcs()["Vpcs"]),
        "subnets": len(ec2.describe_subnets()["Subnets"]),
        "addresses": len(ec2.describe_addresses()["Addresses"]),
        "gateways": len(ec2.describe_internet_gateways()["InternetGateways"]),
        "interfaces": len(ec2.describe_network_interfaces()["NetworkInterfaces"]),
        "groups": len(ec2.describe_security_groups()["SecurityGroups"]),
        "endpoints": len(ec2.describe_vpc_endpoints()["VpcEndpoints"]),
        "templates": len(ec2.describe_launch_templates()["LaunchTemplates"]),
        "roles": len(client("iam").list_roles()["Roles"]),
        "zones": len(client("route53").list_hosted_zones()["HostedZones"]),
        "files": len(client("efs").describe_file_systems()["FileSystems"]),
        "buckets": len(client("s3").list_buckets()["Buckets"]),
    }


def stack_state(status: str, name: str = "paddle-cluster") -> None:
    """Put a stack, by default the cluster's, into a status that moto itself never reaches."""
    stacks = cloudformation_backends["123456789012"]["us-west-2"].stacks.values()
    (stack,) = [stack for stack in stacks if stack.name == name]
    stack.status = status


def change(directory: Path, old: str, new: str) -> None:
    path = directory / "cluster.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def cluster() -> dict[str, Any]:
    return dict(client("eks").describe_cluster(name="paddle-cluster")["cluster"])


def node_group() -> dict[str, Any]:
    (name,) = client("eks").list_nodegroups(clusterName="paddle-cluster")["nodegroups"]
    return dict(client("eks").describe_nodegroup(clusterName="paddle-cluster", nodegroupName=name)["nodegroup"])


def zones_of(subnets: list[str]) -> set[str]:
    found = client("ec2").describe_subnets(SubnetIds=subnets)["Subnets"]
    return {subnet["AvailabilityZone"] for subnet in found}
