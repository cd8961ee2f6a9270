"""The template as it is sent, checked with cfn-lint's schemas and rules for each kind of cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cfnlint.decode.decode import decode_str
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from paddlejob.cloud.aws.config.cluster import SETTINGS, ClusterConfig
from paddlejob.cloud.aws.stack import render

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
}
SMALLEST = ClusterConfig(clusterName="a", region="us-west-2", availabilityZones=["us-west-2a"])
PARAMETERS = {*render.parameters(SMALLEST), *render.FROM_DATA}


# What the data stack gives to the cluster's.
DATA = {"FileSystemId": "fs-2cbf7385", "JobRoleArn": "arn:aws:iam::123456789012:role/paddle-cluster-data-JobRole-1"}


def templates(config: ClusterConfig) -> list[str]:
    """Those of both stacks."""
    data = render.template(render.data_parameters(config), render.DATA_TEMPLATE)
    return [render.template(render.parameters(config) | DATA), data]


@pytest.mark.parametrize("variant", VARIANTS)
def test_cfn_lint_finds_nothing(variant: str, configured: Callable[..., ClusterConfig]) -> None:
    for template in templates(configured(**VARIANTS[variant])):
        assert "@" not in template.split("Parameters:")[1].split("Conditions:")[0]
        assert findings(template) == []


def test_every_setting_is_in_a_variant() -> None:
    tried = {name for settings in VARIANTS.values() for name in settings}
    assert set(SETTINGS) - tried == {"clusterName", "region", "workerCount", "maxWorkerCount"}


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_cfn_lint_finds_nothing_in_other_partitions(region: str, configured: Callable[..., ClusterConfig]) -> None:
    config = configured(region=region, availabilityZones=[f"{region}a"])
    assert [findings(template, region) for template in templates(config)] == [[], []]


def test_cfn_lint_would_find_a_fault(configured: Callable[..., ClusterConfig]) -> None:
    values = render.parameters(configured()) | DATA
    assert findings(render.template({**values, "AmiType": "WINDOWS_95"}))
    assert findings(render.template(values).replace("!Ref Vpc\n", "!Ref Vcp\n", 1))


def test_it_is_small_enough_to_be_sent_as_text(configured: Callable[..., ClusterConfig]) -> None:
    assert all(len(template.encode()) < 51_200 for template in templates(configured()))


def resources(config: ClusterConfig) -> dict[str, Any]:
    """Those of both stacks."""
    parsed = [decode_str(template)[0] for template in templates(config)]
    return {name: resource for stack in parsed for name, resource in stack["Resources"].items()}


def test_a_change_that_would_replace_a_resource_is_rejected_or_noted(configured: Callable[..., ClusterConfig]) -> None:
    """By the schemas of the resource types: each parameter in a property that is only set on creation."""
    found = {
        name
        for resource in resources(configured()).values()
        for path in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", resource["Type"]).schema.get(
            "createOnlyProperties", []
        )
        for name in refs(resource["Properties"].get(path.split("/")[2], {}))
    }
    # Whom a change of these replaces goes unnoticed: a DNS zone, an access entry; and the image follows the type.
    harmless = {"BoundaryArn", "ExternalDnsName", "AdministratorArn", "AmiType"}
    derived = {"PublicCidrs", "PrivateCidrs", "JobRoleArn"}  # from VpcCidr, from the data stack
    assert found - harmless - derived == {*render.IMMUTABLE, "CapacityType", "InstanceType"}, "the nodes' are shown"


def refs(value: Any) -> set[str]:
    """The stack's parameters that a property is made of."""
    if isinstance(value, dict):
        named = {value["Ref"]} if "Ref" in value else set()
        return named.union(*(refs(inner) for inner in value.values())) & PARAMETERS
    return set().union(*(refs(inner) for inner in value)) & PARAMETERS if isinstance(value, list) else set()


def test_the_data_is_in_no_stack_that_a_cluster_is_deleted_with(configured: Callable[..., ClusterConfig]) -> None:
    cluster, data = ({*decode_str(template)[0]["Resources"]} for template in templates(configured()))
    assert data == {"FileSystem", "Bucket", "BucketPolicy", "JobRole"}
    assert not data & cluster
    for name in ("FileSystem", "Bucket"):
        assert resources(configured())[name]["UpdateReplacePolicy"] == "Retain"
    assert resources(configured())["FileSystem"]["Properties"]["Encrypted"] is True
    assert "KmsKeyId" not in resources(configured())["FileSystem"]["Properties"], "the key goes with the cluster"


def test_the_cluster_never_slips_into_the_dear_support_of_old_versions(
    configured: Callable[..., ClusterConfig],
) -> None:
    cluster = resources(configured())["Cluster"]["Properties"]
    assert cluster["UpgradePolicy"] == {"SupportType": "STANDARD"}
    assert cluster["AccessConfig"]["AuthenticationMode"] == "API"
    assert cluster["ResourcesVpcConfig"]["EndpointPrivateAccess"] is True


def test_nodes_follow_the_version_of_the_control_plane_and_are_not_bound_to_imds_v1(
    configured: Callable[..., ClusterConfig],
) -> None:
    made = resources(configured())
    assert made["Nodes"]["Properties"]["Version"] == made["Cluster"]["Properties"]["Version"]
    options = made["NodeTemplate"]["Properties"]["LaunchTemplateData"]["MetadataOptions"]
    assert options == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}


def test_pods_do_not_inherit_the_rights_of_their_node(configured: Callable[..., ClusterConfig]) -> None:
    made = resources(configured())
    attached = str(made["NodeRole"]["Properties"]["ManagedPolicyArns"])
    assert "CNI" not in attached, "the network plugin has a role of its own"
    assert "Policies" not in made["NodeRole"]["Properties"], "training pods get at the bucket by their own role"
    (plugin,) = made["NetworkPlugin"]["Properties"]["PodIdentityAssociations"]
    assert plugin["ServiceAccount"] == "aws-node"
    assert made["JobIdentity"]["Properties"]["RoleArn"] == {"Ref": "JobRoleArn"}


def test_nodes_come_after_what_makes_them_ready_and_go_before_their_file_system(
    configured: Callable[..., ClusterConfig],
) -> None:
    nodes = resources(configured())["Nodes"]
    assert {"NetworkPlugin", "PodIdentity", "Proxy", "MountTarget1"} == {*nodes["DependsOn"]}
    assert "MountTarget2" in str(nodes["Metadata"])
    assert "MountTarget3" in str(nodes["Metadata"])
    assert resources(configured())["Cluster"]["Properties"]["BootstrapSelfManagedAddons"] is False
