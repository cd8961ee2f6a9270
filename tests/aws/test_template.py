"""The template as it is sent, checked with cfn-lint's schemas and rules for each kind of cluster."""

from __future__ import annotations

from typing import Any

import pytest
from cfnlint.decode.decode import decode_str
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from paddlejob.cloud.aws.config.cluster import SETTINGS, ClusterConfig
from paddlejob.cloud.aws.templates import render

from .kinds import Configured
from .linting import findings

OWN_KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
# Each setting, and each way of it, is in one of these; cfn-lint tries every condition in all of them.
VARIANTS: dict[str, dict[str, Any]] = {
    "one zone": {},
    "two zones, spot, own key, key pair": {
        "availabilityZones": ["us-west-2a", "us-west-2b"],
        "workerSpot": True,
        "kmsKeyArn": OWN_KEY,
        "keyName": "my key",
    },
    "three zones, gpu, kept files, version": {
        "availabilityZones": ["us-west-2a", "us-west-2b", "us-west-2c"],
        "workerInstanceType": "g4dn.xlarge",
        "workerDiskSize": 200,
        "fileSystemId": "fs-2cbf7385",
        "kubernetesVersion": "1.36",
    },
    "arm, administrator, closed api": {
        "workerInstanceType": "m7g.xlarge",
        "administratorArn": "arn:aws:iam::123456789012:role/admin",
        "apiAccessCIDRs": ["203.0.113.0/24", "198.51.100.7/32"],
        "vpcCIDR": "192.168.0.0/22",
    },
    "arm gpu, spot, zone": {"workerInstanceType": "g5g.xlarge", "workerSpot": True, "externalDNSName": "paddle"},
    "auto mode": {"autoMode": True},
    "efa": {"workerInstanceType": "p4d.24xlarge", "efa": True},
    "efa, reservation": {
        "workerInstanceType": "p5.48xlarge",
        "efa": True,
        "capacityReservationId": "cr-0123456789abcdef0",
    },
}
# What `up` asks AWS for.
ASKED = {"efa": {"EfaInterfaces": "4"}, "efa, reservation": {"EfaInterfaces": "32", "CapacityType": "CAPACITY_BLOCK"}}
SMALLEST = ClusterConfig(clusterName="a", region="us-west-2", availabilityZones=["us-west-2a"])
PARAMETERS = {*render.parameters(SMALLEST), *render.FROM_DATA}


# What the data stack gives to the cluster's.
DATA = {"FileSystemId": "fs-2cbf7385", "JobRoleArn": "arn:aws:iam::123456789012:role/paddle-cluster-data-JobRole-1"}


def templates(config: ClusterConfig, **asked: str) -> list[str]:
    """Those of both stacks."""
    data = render.data_template(config.cluster_name, config.file_system_id)
    return [render.cluster_template(config, render.parameters(config, **asked) | DATA).text, data.text]


@pytest.mark.parametrize("variant", VARIANTS)
def test_cfn_lint_finds_nothing(variant: str, configured: Configured) -> None:
    for template in templates(configured(**VARIANTS[variant]), **ASKED.get(variant, {})):
        assert "@" not in template
        assert findings(template) == []


def test_every_setting_is_in_a_variant() -> None:
    tried = {name for settings in VARIANTS.values() for name in settings}
    assert set(SETTINGS) - tried == {"clusterName", "region", "workerCount", "maxWorkerCount"}


ATTACHED = {
    "ClusterName": "theirs",
    "VpcId": "vpc-01234567",
    "SecurityGroup": "sg-01234567",
    "BoundaryArn": "",
    **DATA,
}


@pytest.mark.parametrize("region", ["us-west-2", "cn-north-1", "us-gov-west-1"])
def test_cfn_lint_finds_nothing_in_the_attachment_to_a_cluster(region: str) -> None:
    template = render.attachment_template(ATTACHED, ["subnet-01234567", "subnet-89abcdef"])
    assert findings(template.text, region) == []
    made = decode_str(template.text)[0]["Resources"]
    assert {*made} == {"FileSystemAccess", "JobIdentity", "MountTarget1", "MountTarget2"}
    assert made["MountTarget2"]["Properties"]["SubnetId"] == "subnet-89abcdef"


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_cfn_lint_finds_nothing_in_other_partitions(region: str, configured: Configured) -> None:
    config = configured(region=region, availabilityZones=[f"{region}a"])
    assert [findings(template, region) for template in templates(config)] == [[], []]


def test_cfn_lint_would_find_a_fault(configured: Configured) -> None:
    values = render.parameters(configured()) | DATA
    assert findings(render.cluster_template(configured(), {**values, "AmiType": "WINDOWS_95"}).text)
    assert findings(templates(configured())[0].replace("Ref: Vpc\n", "Ref: Vcp\n", 1))


def test_it_is_small_enough_to_be_sent_as_text(configured: Configured) -> None:
    assert all(len(template.encode()) < 51_200 for template in templates(configured()))


def resources(config: ClusterConfig, **asked: str) -> dict[str, Any]:
    """Those of both stacks."""
    parsed = [decode_str(template)[0] for template in templates(config, **asked)]
    return {name: resource for stack in parsed for name, resource in stack["Resources"].items()}


def test_a_change_that_would_replace_a_resource_is_rejected_or_noted(configured: Configured) -> None:
    """By the schemas of the resource types: each parameter in a property that is only set on creation."""
    found = {
        name
        for variant in VARIANTS.values()
        for resource in resources(configured(**variant)).values()
        for path in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", resource["Type"]).schema.get(
            "createOnlyProperties", []
        )
        for name in refs(resource["Properties"].get(path.split("/")[2], {}))
    }
    # Whom a change of these replaces goes unnoticed: a DNS zone, an access entry; and the image follows the type.
    harmless = {"BoundaryArn", "ExternalDnsName", "AdministratorArn", "AmiType"}
    derived = {"JobRoleArn", "RolePath"}  # from the data stack; as it was when the stack was created
    assert found - harmless - derived == {*render.IMMUTABLE, "CapacityType", "InstanceType"}, "the nodes' are shown"


def refs(value: Any) -> set[str]:
    """The stack's parameters that a property is made of."""
    if isinstance(value, dict):
        named = {value["Ref"]} if "Ref" in value else set()
        return named.union(*(refs(inner) for inner in value.values())) & PARAMETERS
    return set().union(*(refs(inner) for inner in value)) & PARAMETERS if isinstance(value, list) else set()


def test_the_data_is_in_no_stack_that_a_cluster_is_deleted_with(configured: Configured) -> None:
    cluster, data = ({*decode_str(template)[0]["Resources"]} for template in templates(configured()))
    assert data == {"FileSystem", "Bucket", "BucketPolicy", "JobRole"}
    assert not data & cluster
    for name in ("FileSystem", "Bucket"):
        assert resources(configured())[name]["UpdateReplacePolicy"] == "Retain"
    assert resources(configured())["FileSystem"]["Properties"]["Encrypted"] is True
    assert "KmsKeyId" not in resources(configured())["FileSystem"]["Properties"], "the key goes with the cluster"


def test_the_cluster_never_slips_into_the_dear_support_of_old_versions(
    configured: Configured,
) -> None:
    cluster = resources(configured())["Cluster"]["Properties"]
    assert cluster["UpgradePolicy"] == {"SupportType": "STANDARD"}
    assert cluster["AccessConfig"]["AuthenticationMode"] == "API"
    assert cluster["ResourcesVpcConfig"]["EndpointPrivateAccess"] is True


def test_nodes_follow_the_version_of_the_control_plane_and_are_not_bound_to_imds_v1(
    configured: Configured,
) -> None:
    made = resources(configured())
    assert made["Nodes"]["Properties"]["Version"] == made["Cluster"]["Properties"]["Version"]
    options = made["NodeTemplate"]["Properties"]["LaunchTemplateData"]["MetadataOptions"]
    assert options == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}


def test_pods_do_not_inherit_the_rights_of_their_node(configured: Configured) -> None:
    made = resources(configured())
    attached = str(made["NodeRole"]["Properties"]["ManagedPolicyArns"])
    assert "CNI" not in attached, "the network plugin has a role of its own"
    assert "Policies" not in made["NodeRole"]["Properties"], "training pods get at the bucket by their own role"
    (plugin,) = made["NetworkPlugin"]["Properties"]["PodIdentityAssociations"]
    assert plugin["ServiceAccount"] == "aws-node"
    assert made["JobIdentity"]["Properties"]["RoleArn"] == {"Ref": "JobRoleArn"}


def test_nodes_come_after_what_makes_them_ready_and_go_before_their_file_system(
    configured: Configured,
) -> None:
    zones = ["us-west-2a", "us-west-2b", "us-west-2c"]
    nodes = resources(configured(availabilityZones=zones))["Nodes"]
    assert {*nodes["DependsOn"]} == {
        *("NetworkPlugin", "PodIdentity", "Proxy", "MountTarget1", "MountTarget2", "MountTarget3"),
        *("PrivateRoutes1", "PrivateRoutes2", "PrivateRoutes3"),
    }
    assert {"MountTarget1", "MountTarget2"} & {*resources(configured())} == {"MountTarget1"}, "where there are nodes"
    assert resources(configured())["Cluster"]["Properties"]["BootstrapSelfManagedAddons"] is False


def test_the_audit_log_is_on_and_the_private_zone_is_opt_in(configured: Configured) -> None:
    made = resources(configured())
    assert made["Cluster"]["Properties"]["Logging"] == {"ClusterLogging": {"EnabledTypes": [{"Type": "audit"}]}}
    assert not {"ApiZone", "ApiName"} & {*made}
    assert {"ApiZone", "ApiName"} <= {*resources(configured(externalDNSName="paddle"))}


def test_data_that_is_not_used_becomes_cheaper_and_the_bucket_takes_tls_only(
    configured: Configured,
) -> None:
    made = resources(configured())
    assert {"TransitionToIA": "AFTER_30_DAYS"} in made["FileSystem"]["Properties"]["LifecyclePolicies"]
    uploads, tiers = made["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert uploads["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert tiers["Transitions"] == [{"StorageClass": "INTELLIGENT_TIERING", "TransitionInDays": 30}]
    (statement,) = made["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_auto_mode_leaves_the_nodes_and_their_add_ons_to_eks(configured: Configured) -> None:
    made = resources(configured(autoMode=True))
    assert not {"Nodes", "NodeTemplate", "NetworkPlugin", "Proxy", "PodIdentity", "Dns", "NetworkRole"} & {*made}
    cluster = made["Cluster"]["Properties"]
    enabled = (cluster["ComputeConfig"], cluster["StorageConfig"]["BlockStorage"])
    assert all(part["Enabled"] is True for part in enabled)
    assert cluster["KubernetesNetworkConfig"] == {"ElasticLoadBalancing": {"Enabled": True}}
    assert "AmazonEKSComputePolicy" in str(made["ClusterRole"]["Properties"]["ManagedPolicyArns"])
    assert "AmazonEKSWorkerNodePolicy" not in str(made["NodeRole"]["Properties"]["ManagedPolicyArns"])
    assert {"MountTarget1", "MountTarget2", "StorageDriver"} <= {*made}, "its nodes may be in any zone"


def test_every_network_card_gets_an_efa_and_the_nodes_are_near_each_other(
    configured: Configured,
) -> None:
    made = resources(configured(**VARIANTS["efa"]), **ASKED["efa"])
    data = made["NodeTemplate"]["Properties"]["LaunchTemplateData"]
    cards = [(one["NetworkCardIndex"], one["DeviceIndex"], one["InterfaceType"]) for one in data["NetworkInterfaces"]]
    assert cards == [(0, 0, "efa"), (1, 1, "efa-only"), (2, 1, "efa-only"), (3, 1, "efa-only")]
    assert all(len(one["Groups"]) == 2 for one in data["NetworkInterfaces"]), "of the cluster, and of EFA"
    assert made["EfaIn"]["Properties"]["SourceSecurityGroupId"] == {"Ref": "EfaTraffic"}
    assert made["EfaOut"]["Properties"]["DestinationSecurityGroupId"] == {"Ref": "EfaTraffic"}
    assert data["Placement"] == {"GroupName": {"Ref": "NodePlacement"}}
    assert not {"EfaTraffic", "NodePlacement"} & {*resources(configured())}


def test_a_capacity_block_is_named_in_the_launch_template_with_its_type(
    configured: Configured,
) -> None:
    made = resources(configured(**VARIANTS["efa, reservation"]), **ASKED["efa, reservation"])
    data = made["NodeTemplate"]["Properties"]["LaunchTemplateData"]
    target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationId": {"Ref": "CapacityReservationId"}}
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["InstanceType"] == {"Ref": "InstanceType"}
    assert "InstanceTypes" not in made["Nodes"]["Properties"]
    assert "NodePlacement" not in made
    on_demand = resources(configured(**VARIANTS["efa, reservation"]), EfaInterfaces="32")
    data = on_demand["NodeTemplate"]["Properties"]["LaunchTemplateData"]
    assert "InstanceMarketOptions" not in data
    assert data["CapacityReservationSpecification"]["CapacityReservationTarget"] == target
    assert on_demand["Nodes"]["Properties"]["InstanceTypes"] == [{"Ref": "InstanceType"}]


def test_the_file_system_is_mounted_through_the_network_and_encrypted_only() -> None:
    made = decode_str(render.data_template("paddle-cluster").text)[0]["Resources"]["FileSystem"]["Properties"]
    allowed, denied = made["FileSystemPolicy"]["Statement"]
    assert (allowed["Effect"], denied["Effect"], denied["Action"]) == ("Allow", "Deny", "*")
    assert allowed["Condition"] == {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}}
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
