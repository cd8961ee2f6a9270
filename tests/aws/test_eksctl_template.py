"""A cluster of eksctl is the same as one of the template, setting by setting."""

from __future__ import annotations

from typing import Any

import pytest
from cfnlint.decode.decode import decode_str

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.templates import render
from paddlejob.cloud.aws.templates.eksctl import eksctl_config

from .kinds import Configured

SETTINGS: dict[str, dict[str, Any]] = {
    "small": {},
    "large": {
        "availabilityZones": ["us-west-2a", "us-west-2b", "us-west-2c"],
        "workerCount": 3,
        "maxWorkerCount": 7,
        "workerDiskSize": 200,
        "workerInstanceType": "g4dn.xlarge",
        "workerSpot": True,
        "vpcCIDR": "192.168.0.0/22",
        "apiAccessCIDRs": ["203.0.113.7/32"],
    },
}


def both(config: ClusterConfig) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """The configuration of eksctl, the resources of the template, and its parameters."""
    values = render.parameters(config)
    template = render.cluster_template(config, values | render.from_data({}))
    return eksctl_config(config, values, "aws"), decode_str(template.text)[0]["Resources"], values


def deployed(value: Any, values: dict[str, str]) -> Any:
    """A property of the template with the value of its parameter."""
    return values[value["Ref"]] if isinstance(value, dict) and "Ref" in value else value


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_nodes_are_as_many_as_large_and_as_hidden(configured: Configured, kind: str) -> None:
    config = configured(**SETTINGS[kind])
    made, resources, values = both(config)
    (group,) = made["managedNodeGroups"]
    nodes = resources["Nodes"]["Properties"]
    sizes = {name: int(deployed(value, values)) for name, value in nodes["ScalingConfig"].items()}
    assert (group["minSize"], group["desiredCapacity"], group["maxSize"]) == (
        *(sizes["MinSize"], sizes["DesiredSize"], sizes["MaxSize"]),
    )
    (disk,) = resources["NodeTemplate"]["Properties"]["LaunchTemplateData"]["BlockDeviceMappings"]
    assert group["volumeSize"] == int(deployed(disk["Ebs"]["VolumeSize"], values))
    assert group["volumeEncrypted"] == disk["Ebs"]["Encrypted"]
    assert group["instanceType"] == deployed(nodes["InstanceTypes"][0], values)
    assert group["spot"] == (deployed(nodes["CapacityType"], values) == "SPOT")
    assert deployed(nodes["AmiType"], values).startswith("AL2023")
    assert group["amiFamily"] == "AmazonLinux2023"
    assert {subnet["Ref"][:-1] for subnet in nodes["Subnets"]} == {"PrivateSubnet"}
    assert group["privateNetworking"] is True
    assert group["tags"] == {"paddlejob/cluster": config.cluster_name}
    assert group["name"] == "workers"


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_network_and_the_ways_to_the_api_are_the_same(configured: Configured, kind: str) -> None:
    made, resources, values = both(configured(**SETTINGS[kind]))
    cluster = resources["Cluster"]["Properties"]
    network = cluster["ResourcesVpcConfig"]
    assert made["vpc"]["cidr"] == deployed(resources["Vpc"]["Properties"]["CidrBlock"], values)
    assert [one["Type"] for one in resources.values()].count("AWS::EC2::NatGateway") == 1
    assert made["vpc"]["nat"] == {"gateway": "Single"}
    assert made["vpc"]["clusterEndpoints"] == {
        "privateAccess": network["EndpointPrivateAccess"],
        "publicAccess": network["EndpointPublicAccess"],
    }
    assert ",".join(made["vpc"]["publicAccessCIDRs"]) == deployed(network["PublicAccessCidrs"], values)
    zones = [
        deployed(one["Properties"]["AvailabilityZone"], values)
        for name, one in resources.items()
        if "Public" in name and "Subnet" in one["Type"] and "AvailabilityZone" in one["Properties"]
    ]
    assert made["availabilityZones"] == zones
    assert made["accessConfig"]["authenticationMode"] == cluster["AccessConfig"]["AuthenticationMode"]
    assert made["upgradePolicy"] == {"supportType": cluster["UpgradePolicy"]["SupportType"]}
    logged = [one["Type"] for one in cluster["Logging"]["ClusterLogging"]["EnabledTypes"]]
    assert made["cloudWatch"]["clusterLogging"]["enableTypes"] == logged


@pytest.mark.parametrize("auto_mode", [False, True])
def test_the_add_ons_are_the_same_and_get_their_permissions_without_a_command(
    configured: Configured, auto_mode: bool
) -> None:
    made, resources, _ = both(configured(autoMode=auto_mode))
    addons = [one["Properties"]["AddonName"] for one in resources.values() if one["Type"] == "AWS::EKS::Addon"]
    assert [addon["name"] for addon in made["addons"]] == addons
    assert made["addonsConfig"] == {"autoApplyPodIdentityAssociations": True}


def test_what_is_not_set_is_left_to_eksctl(configured: Configured) -> None:
    made, _, _ = both(configured())
    assert not {"secretsEncryption", "autoModeConfig"} & {*made}
    assert not {"ssh", "efaEnabled", "capacityReservation", "instanceMarketOptions"} & {*made["managedNodeGroups"][0]}
    with_key = both(configured(keyName="mine"))[0]["managedNodeGroups"][0]
    assert with_key["ssh"] == {"allow": True, "publicKeyName": "mine"}


def test_another_administrator_is_one_of_the_whole_cluster(configured: Configured) -> None:
    (entry,) = both(configured(administratorArn="arn:aws:iam::123456789012:role/admin"))[0]["accessConfig"][
        "accessEntries"
    ]
    (policy,) = entry["accessPolicies"]
    assert policy["accessScope"] == {"type": "cluster"}
    assert policy["policyARN"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
