"""What tests ask AWS and do to cluster.yaml, beside what `pdj aws` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3


def client(service: str) -> Any:
    return boto3.client(service, region_name="us-west-2")


def outputs() -> dict[str, str]:
    (stack,) = client("cloudformation").describe_stacks(StackName="paddle-cluster")["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def inventory() -> dict[str, int]:
    """How much there is of everything that a cluster is made of."""
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
        "templates": len(ec2.describe_launch_templates()["LaunchTemplates"]),
        "roles": len(client("iam").list_roles()["Roles"]),
        "zones": len(client("route53").list_hosted_zones()["HostedZones"]),
        "files": len(client("efs").describe_file_systems()["FileSystems"]),
        "buckets": len(client("s3").list_buckets()["Buckets"]),
    }


def change(directory: Path, old: str, new: str) -> None:
    path = directory / "cluster.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
