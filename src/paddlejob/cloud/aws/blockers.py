"""What lives in the cluster's network and is not the stack's: it would block the deletion of the network."""

from __future__ import annotations

from typing import Any

from .refusals import Refused
from .session import Aws
from .stack import StackState


def blockers(aws: Aws, state: StackState) -> list[str]:
    """Each with its name and what to do about it."""
    cluster, vpc = state.name, state.outputs.get("VpcId")
    if not vpc:
        return []
    return [
        *_load_balancers(aws, vpc),
        *_interfaces(aws, cluster, vpc, state.outputs.get("FileSystemId", "")),
        *_security_groups(aws, cluster, vpc),
    ]


def _load_balancers(aws: Aws, vpc: str) -> list[str]:
    advice = "delete the Service or Ingress that made it, or the load balancer itself"
    new = aws.items("elbv2", "describe_load_balancers", "LoadBalancers")
    old = aws.items("elb", "describe_load_balancers", "LoadBalancerDescriptions")
    names = [item["LoadBalancerName"] for item in new if item.get("VpcId") == vpc]
    names += [item["LoadBalancerName"] for item in old if item.get("VPCId") == vpc]
    return [f"load balancer {name}: {advice}" for name in names]


def _interfaces(aws: Aws, cluster: str, vpc: str, files: str) -> list[str]:
    found = aws.items("ec2", "describe_network_interfaces", "NetworkInterfaces", Filters=_in(vpc))
    nodes = _nodes(aws, vpc, cluster)
    own = _of_nat_gateways(aws, vpc) | _of_mount_targets(aws, files)
    return [
        f"network interface {item['NetworkInterfaceId']} ({_owner(item)}): remove what uses it, or the interface"
        for item in found
        if item["NetworkInterfaceId"] not in own and not _goes_by_itself(item, cluster, nodes)
    ]


def _goes_by_itself(item: dict[str, Any], cluster: str, nodes: set[str]) -> bool:
    """Those of the control plane and of the nodes, and those of load balancers, which are named already."""
    description = item.get("Description", "")
    attached_to = item.get("Attachment", {}).get("InstanceId", "")
    return attached_to in nodes or description == f"Amazon EKS {cluster}" or description.startswith("ELB ")


def _of_nat_gateways(aws: Aws, vpc: str) -> set[str]:
    gateways = aws.items("ec2", "describe_nat_gateways", "NatGateways", Filters=_in(vpc))
    return {
        address["NetworkInterfaceId"]
        for gateway in gateways
        for address in gateway.get("NatGatewayAddresses", [])
        if "NetworkInterfaceId" in address
    }


def _of_mount_targets(aws: Aws, files: str) -> set[str]:
    try:
        targets = aws.items("efs", "describe_mount_targets", "MountTargets", FileSystemId=files) if files else []
    except Refused as no:
        if no.code != "FileSystemNotFound":
            raise
        targets = []
    return {target["NetworkInterfaceId"] for target in targets if "NetworkInterfaceId" in target}


def _owner(item: dict[str, Any]) -> str:
    instance = item.get("Attachment", {}).get("InstanceId")
    return f"instance {instance}" if instance else item.get("Description") or item.get("Status") or "no description"


def _nodes(aws: Aws, vpc: str, cluster: str) -> set[str]:
    wanted = [*_in(vpc), {"Name": "tag:eks:cluster-name", "Values": [cluster]}]
    reservations = aws.items("ec2", "describe_instances", "Reservations", Filters=wanted)
    return {instance["InstanceId"] for reservation in reservations for instance in reservation["Instances"]}


def _security_groups(aws: Aws, cluster: str, vpc: str) -> list[str]:
    found = aws.items("ec2", "describe_security_groups", "SecurityGroups", Filters=_in(vpc))
    return [
        f"security group {item['GroupId']} ({item['GroupName']}): delete it"
        for item in found
        if item["GroupName"] != "default" and not _of_cluster(item, cluster)
    ]


def _of_cluster(item: dict[str, Any], cluster: str) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}
    return cluster in (tags.get("aws:cloudformation:stack-name"), tags.get("aws:eks:cluster-name"))


def _in(vpc: str) -> list[dict[str, Any]]:
    return [{"Name": "vpc-id", "Values": [vpc]}]
