"""Resources outside the stack that would block the deletion of the cluster or its network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlejob.cloud.aws.capacity import instances_of
from paddlejob.cloud.aws.session import Aws, filters
from paddlejob.cloud.aws.stack.leaked import is_leaked


def blockers(aws: Aws, cluster: str, resources: Mapping[str, str], ignore_leaked: bool = False) -> list[str]:
    """Name each blocker and what to do about it. `resources` are the stack's own.

    `ignore_leaked` leaves out the network interfaces that the deletion removes itself.
    """
    found = _other_nodes(aws, cluster, resources) if "Cluster" in resources else []
    if vpc := resources.get("Vpc"):
        found += _load_balancers(aws, vpc)
        found += _interfaces(aws, cluster, vpc, resources, ignore_leaked)
        # EKS deletes its own group with the cluster. A group that it could not delete blocks the VPC.
        found += _security_groups(aws, cluster if "Cluster" in resources else "", vpc, set(resources.values()))
    if zone := resources.get("ApiZone"):
        found += _records(aws, zone, resources.get("ApiName", ""))
    return found


def _other_nodes(aws: Aws, cluster: str, resources: Mapping[str, str]) -> list[str]:
    own = resources.get("Nodes", "").rpartition("/")[2]
    known: dict[str, Any] = {"absent": "ResourceNotFoundException", "clusterName": cluster}
    groups = aws.items("eks", "list_nodegroups", "nodegroups", **known)
    profiles = aws.items("eks", "list_fargate_profiles", "fargateProfileNames", **known)
    named = [f"node group {name}: delete it in EKS" for name in groups if name != own]
    return named + [f"Fargate profile {name}: delete it in EKS" for name in profiles]


def _records(aws: Aws, zone: str, own: str) -> list[str]:
    """A private zone can be deleted only when it contains no records but NS, SOA and the stack's own."""
    known = {"absent": "NoSuchHostedZone", "HostedZoneId": zone}
    records = aws.items("route53", "list_resource_record_sets", "ResourceRecordSets", **known)
    foreign = [
        record
        for record in records
        if record["Type"] not in ("NS", "SOA") and record["Name"].rstrip(".") != own.rstrip(".")
    ]
    return [f"DNS record {record['Name']} ({record['Type']}) in zone {zone}: delete it" for record in foreign]


def _load_balancers(aws: Aws, vpc: str) -> list[str]:
    advice = "delete the Service or Ingress that created it, or the load balancer itself"
    new = aws.items("elbv2", "describe_load_balancers", "LoadBalancers")
    old = aws.items("elb", "describe_load_balancers", "LoadBalancerDescriptions")
    names = [item["LoadBalancerName"] for item in new if item.get("VpcId") == vpc]
    names += [item["LoadBalancerName"] for item in old if item.get("VPCId") == vpc]
    return [f"load balancer {name}: {advice}" for name in names]


def _interfaces(aws: Aws, cluster: str, vpc: str, resources: Mapping[str, str], ignore_leaked: bool) -> list[str]:
    found = aws.items("ec2", "describe_network_interfaces", "NetworkInterfaces", Filters=filters({"vpc-id": vpc}))
    nodes = _nodes(aws, vpc, cluster)
    own = _of_nat_gateway(aws, resources.get("NatGateway", "")) | _of_mount_targets(aws, resources)
    return [
        f"network interface {item['NetworkInterfaceId']} ({_owner(item)}): delete what uses it, or the interface"
        for item in found
        if item["NetworkInterfaceId"] not in own and not _is_removed_with_the_cluster(item, cluster, nodes)
        if not (ignore_leaked and is_leaked(item))
    ]


def _is_removed_with_the_cluster(item: dict[str, Any], cluster: str, nodes: set[str]) -> bool:
    """True for interfaces of the control plane, of nodes, and of load balancers, which are reported already."""
    description = item.get("Description", "")
    attached_to = item.get("Attachment", {}).get("InstanceId", "")
    return attached_to in nodes or description == f"Amazon EKS {cluster}" or description.startswith("ELB ")


def _of_nat_gateway(aws: Aws, name: str) -> set[str]:
    wanted = filters({"nat-gateway-id": name})
    gateways = aws.items("ec2", "describe_nat_gateways", "NatGateways", Filters=wanted) if name else []
    return {
        address["NetworkInterfaceId"]
        for gateway in gateways
        for address in gateway.get("NatGatewayAddresses", [])
        if "NetworkInterfaceId" in address
    }


def _of_mount_targets(aws: Aws, resources: Mapping[str, str]) -> set[str]:
    own = [name for logical, name in resources.items() if logical.startswith("MountTarget")]
    found = [
        target
        for name in own
        for target in aws.items(
            "efs", "describe_mount_targets", "MountTargets", "MountTargetNotFound", MountTargetId=name
        )
    ]
    return {target["NetworkInterfaceId"] for target in found if "NetworkInterfaceId" in target}


def _owner(item: dict[str, Any]) -> str:
    instance = item.get("Attachment", {}).get("InstanceId")
    return f"instance {instance}" if instance else item.get("Description") or item.get("Status") or "no description"


def _nodes(aws: Aws, vpc: str, cluster: str) -> set[str]:
    return {instance["InstanceId"] for instance in instances_of(aws, cluster, {"vpc-id": vpc})}


def _security_groups(aws: Aws, cluster: str, vpc: str, own: set[str]) -> list[str]:
    found = aws.items("ec2", "describe_security_groups", "SecurityGroups", Filters=filters({"vpc-id": vpc}))
    return [
        f"security group {item['GroupId']} ({item['GroupName']}): delete it"
        for item in found
        if item["GroupName"] != "default" and item["GroupId"] not in own and not _is_created_by_eks(item, cluster)
    ]


def _is_created_by_eks(item: dict[str, Any], cluster: str) -> bool:
    return {"Key": "aws:eks:cluster-name", "Value": cluster} in item.get("Tags", [])
