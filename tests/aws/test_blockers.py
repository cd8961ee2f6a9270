"""What is in the way of a deletion is named once and with its owner; what goes with the cluster is not named."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.blockers import blockers
from paddlejob.cloud.aws.stack.leaked import delete_leaked

from .answers import answer
from .aws_state import client

pytestmark = pytest.mark.usefixtures("made")


@pytest.fixture
def network() -> dict[str, str]:
    """A network without a cluster in it: its VPC and a subnet."""
    vpc = client("ec2").create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    return {"Vpc": vpc, "Subnet": subnet_of(vpc, "10.7.0.0/24")}


def subnet_of(vpc: str, cidr: str) -> str:
    return str(client("ec2").create_subnet(VpcId=vpc, CidrBlock=cidr)["Subnet"]["SubnetId"])


def interface(network: dict[str, str], description: str = "") -> str:
    made = client("ec2").create_network_interface(SubnetId=network["Subnet"], Description=description)
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def instance(network: dict[str, str], **tags: str) -> str:
    named = [{"Key": key.replace("__", ":").replace("_", "-"), "Value": value} for key, value in tags.items()]
    tagged = [{"ResourceType": "instance", "Tags": named}] if named else []
    request: dict[str, Any] = {"ImageId": "ami-12c6146b", "MinCount": 1, "MaxCount": 1, "TagSpecifications": tagged}
    made = client("ec2").run_instances(SubnetId=network["Subnet"], **request)["Instances"][0]
    return str(made["InstanceId"])


def found(network: dict[str, str], **options: bool) -> list[str]:
    return blockers(Aws("us-west-2"), "paddle-cluster", network, **options)


def test_an_empty_network_blocks_nothing(network: dict[str, str]) -> None:
    assert found(network) == []


def test_interfaces_of_the_control_plane_go_with_it_and_those_of_another_cluster_do_not(
    network: dict[str, str],
) -> None:
    interface(network, "Amazon EKS paddle-cluster")
    other = interface(network, "Amazon EKS another")
    (line,) = found(network)
    assert line.startswith(f"network interface {other} (Amazon EKS another): ")


def test_a_load_balancer_is_named_and_not_its_interfaces_as_well(network: dict[str, str]) -> None:
    interface(network, "ELB net/k8s-web/0123456789abcdef")
    client("elbv2").create_load_balancer(Name="k8s-web", Subnets=[network["Subnet"]], Type="network")
    client("elb").create_load_balancer(
        LoadBalancerName="k8s-old",
        Listeners=[{"Protocol": "tcp", "LoadBalancerPort": 80, "InstancePort": 80}],
        Subnets=[network["Subnet"]],
    )
    named = [line for line in found(network) if "security group" not in line]
    assert [line.split(":")[0] for line in named] == ["load balancer k8s-web", "load balancer k8s-old"]


def test_what_is_in_another_network_is_not_in_the_way(network: dict[str, str]) -> None:
    vpc = client("ec2").create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    other = {"Vpc": vpc, "Subnet": subnet_of(vpc, "10.8.0.0/24")}
    interface(other, "a lambda")
    client("elbv2").create_load_balancer(Name="theirs", Subnets=[other["Subnet"]], Type="network")
    client("ec2").create_security_group(GroupName="theirs", Description="x", VpcId=vpc)
    assert found(network) == []


def test_nodes_go_with_the_cluster_and_an_instance_of_others_is_named(network: dict[str, str]) -> None:
    instance(network, eks__cluster_name="paddle-cluster")
    other = instance(network)
    (line,) = found(network)
    assert line.endswith(f"(instance {other}): delete what uses it, or the interface")


def test_an_interface_without_a_description_is_named_by_its_status(network: dict[str, str]) -> None:
    name = interface(network)
    assert found(network) == [f"network interface {name} (available): delete what uses it, or the interface"]


def test_an_interface_that_the_deletion_removes_itself_is_named_only_where_that_failed(
    network: dict[str, str],
) -> None:
    name = interface(network, "aws-K8S-i-0123456789abcdef0")
    assert found(network, ignore_leaked=True) == []
    (line,) = found(network)
    assert line.startswith(f"network interface {name} ")


def test_interfaces_of_others_are_not_deleted_with_those_that_nodes_left(network: dict[str, str]) -> None:
    left, other = interface(network, "aws-K8S-i-0123456789abcdef0"), interface(network, "a lambda")
    said: list[str] = []
    delete_leaked(Aws("us-west-2"), network["Vpc"], said.append)
    assert said == [f"network interface {left}, left by a node, deleted"]
    remaining = client("ec2").describe_network_interfaces()["NetworkInterfaces"]
    assert [one["NetworkInterfaceId"] for one in remaining] == [other]


def test_an_interface_that_cannot_be_deleted_is_named_and_the_next_one_is_deleted(
    network: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [interface(network, f"aws-K8S-i-{n}") for n in range(2)]
    plainly = Aws.items

    def listed(self: Aws, *arguments: Any, **request: Any) -> list[Any]:
        return [{"NetworkInterfaceId": "eni-00000000"}, *plainly(self, *arguments, **request)]

    monkeypatch.setattr(Aws, "items", listed)
    said: list[str] = []
    delete_leaked(Aws("us-west-2"), network["Vpc"], said.append)
    assert said[0].startswith("network interface eni-00000000, left by a node, cannot be deleted: ")
    assert sorted(said[1:]) == sorted(f"network interface {name}, left by a node, deleted" for name in names)


def test_after_the_cluster_and_its_zone_are_gone_the_rest_of_the_network_is_looked_at(
    network: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion of a stack can fail after EKS and Route 53 have deleted theirs."""
    for operation in ("ListNodegroups", "ListFargateProfiles"):  # moto raises a KeyError
        answer(monkeypatch, operation, absent)
    name = interface(network, "a lambda")
    gone = {"Cluster": "paddle-cluster", "Nodes": "paddle-cluster/Nodes", "ApiZone": "Z0123456789ABC"}
    (line,) = found({**network, **gone, "MountTarget1": "fsmt-01234567"})
    assert line.startswith(f"network interface {name} (a lambda)")


def absent(_: dict[str, Any]) -> dict[str, Any]:
    raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "No cluster found"}}, "List")
