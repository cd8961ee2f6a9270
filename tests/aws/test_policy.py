"""The least-privilege policy: enough for our requests and CloudFormation's on our behalf, and nothing more."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from paddlejob.cloud.aws.access.policy import policy
from paddlejob.cloud.aws.config.cluster import MAX_NAME_LENGTH, ClusterConfig
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.templates import render

from .aws_state import change, client
from .iam import allows
from .requests_made import FOR_EVERYONE, in_source, record

Configured = Callable[..., ClusterConfig]
ACCOUNT = "123456789012"

# Rights that a resource type asks for features that the template does not use.
UNUSED = (
    *("s3tables:*", "s3:*Abac", "s3:*Acl", "s3:*Accelerate*", "s3:*Analytics*", "s3:*Annotation*", "s3:*CORS"),
    *("s3:*Cors", "s3:*Inventory*", "s3:*Journal*", "s3:*Lock*", "s3:*Logging"),
    *("s3:*MetadataTable*", "s3:*Metrics*", "s3:*Notification", "s3:*OwnershipControls", "s3:*Replication*"),
    *("s3:*Tiering*", "s3:*Versioning", "s3:*Website", "s3:DeleteBucketEncryption", "s3:DeleteBucketLifecycle"),
    *("elasticfilesystem:*Replication*", "elasticfilesystem:*FileSystemPolicy", "elasticfilesystem:*Protection"),
    *("elasticfilesystem:DeleteTags", "elasticfilesystem:PutBackupPolicy"),
    *("elasticfilesystem:PutLifecycleConfiguration", "kms:GenerateDataKeyWithoutPlaintext", "kms:EnableKey"),
    *(
        "kms:DisableKey*",
        "kms:UpdateKeyDescription",
        "iam:*Group*",
        "iam:*User*",
        "iam:DeleteRolePermissionsBoundary",
        "iam:UpdateAssumeRolePolicy",
    ),
    *("iam:*InstanceProfile", "iam:UpdateRole*", "route53:*QueryLogging*", "route53:*Features"),
    *("route53:DisassociateVPC*", "route53:UpdateHostedZoneComment", "ec2:*Vpn*", "ec2:*PrivateNatGatewayAddress"),
    *("ec2:*NatGatewayAddress", "ec2:*EncryptionControl", "ec2:*SubnetCidrBlock", "ec2:*Tenancy"),
    *("ec2:AcceptAddressTransfer", "ec2:ReplaceRouteTableAssociation", "ec2:UpdateSecurityGroupRuleDescriptions*"),
    *("eks:ActivateCertificateAuthority", "vpc-lattice:*", "vpce:*"),
)
# What is needed although no resource type asks for it, and none of our requests does.
ELSEWHERE = {
    "ec2:CreateNetworkInterface",  # EFS, for a mount target, with the caller's rights
    "ec2:DeleteNetworkInterface",
    "cloudformation:TagResource",  # the stack's own tags
    "kms:CreateGrant",  # EKS, for the key that encrypts secrets
    "ssm:StartSession",  # aws ssm start-session
}


def allowed(document: dict[str, Any]) -> list[str]:
    return [action for statement in document["Statement"] for action in statement["Action"]]


def matches(action: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in patterns)


def asked_by_resource_types(config: ClusterConfig) -> set[str]:
    types = set(re.findall(r"Type: (AWS::\w+::\w+)", both_templates(config)))
    assert len(types) > 15
    return {
        action
        for name in types
        for does, handler in PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", name).schema["handlers"].items()
        for action in handler["permissions"]
        if does != "list"  # of every resource in the account, which a stack does not do
        if not matches(action, UNUSED)
    }


def both_templates(config: ClusterConfig) -> str:
    values = render.parameters(config, AdministratorArn="arn:aws:iam::123456789012:role/me", BoundaryArn="arn")
    cluster = render.cluster_template(config, values | render.from_data({}))
    return cluster.text + render.data_template(config.cluster_name, boundary="arn").text


def permits(document: dict[str, Any], action: str, resource: str) -> bool:
    """Whether the user may do that directly, in the region of the cluster."""
    return allows(document, action, resource, aws__RequestedRegion="us-west-2")


def test_it_covers_what_each_resource_type_says_it_needs(configured: Configured) -> None:
    patterns = allowed(policy(configured(externalDNSName="paddle"), ACCOUNT))
    assert {action for action in asked_by_resource_types(configured()) if not matches(action, patterns)} == set()


def test_it_covers_every_request_in_the_source(configured: Configured) -> None:
    patterns = allowed(policy(configured(externalDNSName="paddle"), ACCOUNT, "s3://my-templates/prefix"))
    needed = in_source() - {FOR_EVERYONE}
    assert {"cloudformation:ContinueUpdateRollback", "eks:DescribeClusterVersions", "s3:PutObject"} < needed
    assert {action for action in needed if not matches(action, patterns)} == set()


def test_it_grants_no_permission_that_is_not_needed(configured: Configured) -> None:
    needed = asked_by_resource_types(configured()) | in_source() | ELSEWHERE
    for config in (configured(), configured(kmsKeyArn=f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1")):
        unneeded = [pattern for pattern in allowed(policy(config, ACCOUNT)) if not any_matches(pattern, needed)]
        assert unneeded == []


def any_matches(pattern: str, actions: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(action, pattern) for action in actions)


@pytest.mark.usefixtures("made", "initialised")
def test_it_permits_every_request_of_a_whole_life_on_the_very_resource(
    pdj: Callable[..., str], configured: Configured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = client("kms").create_key()["KeyMetadata"]["Arn"]
    client("s3").create_bucket(Bucket="my-templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    change(tmp_path, "# kmsKeyArn: arn:aws:kms:...", f"kmsKeyArn: {key}")
    made = record(monkeypatch)
    for verb in (["validate"], ["up", "--s3-uri", "s3://my-templates/prefix"], ["status"], ["scale", "2"]):
        pdj(*verb)
    for verb in (["storage"], ["kubeconfig"], ["policy"], ["destroy", "--keep-data"], ["up"], ["destroy", "--yes"]):
        pdj(*verb)
    document = policy(configured(kmsKeyArn=key, externalDNSName="paddle"), ACCOUNT, "s3://my-templates/prefix")
    assert {request.action for request in made} <= in_source()
    assert len(made) > 25
    rejected = {request for request in made if not permits(document, *request)}
    assert {request for request in rejected if request.action != FOR_EVERYONE} == set()


def test_a_request_beside_the_cluster_is_not_permitted(configured: Configured) -> None:
    document = policy(configured(), ACCOUNT)
    arn = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack"
    assert permits(document, "cloudformation:DeleteStack", f"{arn}/paddle-cluster/1")
    assert not permits(document, "cloudformation:DeleteStack", f"{arn}/another/1")
    assert not permits(document, "s3:DeleteObject", "arn:aws:s3:::another/key")
    assert not permits(document, "ec2:DeleteVpc", "*")
    assert not permits(document, "elasticfilesystem:DeleteFileSystem", "*")


def test_the_role_that_runs_it_can_be_looked_up(configured: Configured) -> None:
    """Its ARN with the path is what the access entry of EKS wants."""
    assert "iam:GetRole" in in_source()
    assert permits(policy(configured(), ACCOUNT), "iam:GetRole", f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso/me")


def test_it_is_narrow(configured: Configured) -> None:
    document = policy(configured(), ACCOUNT)
    assert not [action for action in allowed(document) if action.endswith(":*") or action == "*"]
    by_name = {statement["Sid"]: statement for statement in document["Statement"]}
    arn = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack"
    assert by_name["Stacks"]["Resource"] == [f"{arn}/paddle-cluster/*", f"{arn}/paddle-cluster-data/*"]
    assert by_name["Roles"]["Resource"] == [f"arn:aws:iam::{ACCOUNT}:role/paddle-cluster-*Role-*"]
    assert "AdministratorAccess" not in json.dumps(by_name["Managed"])
    directly = [s for s in document["Statement"] if s["Resource"] == ["*"] and "Condition" not in s]
    verbs = {action.split(":")[1] for statement in directly for action in statement["Action"]}
    assert all(verb.startswith(("Describe", "Get", "List")) for verb in verbs), "without a name, only reading"


def test_the_managed_policies_that_may_be_attached_are_those_of_the_template(configured: Configured) -> None:
    template = both_templates(configured())
    used = set(re.findall(r"iam::aws:policy/([\w/-]+)", template))
    (managed,) = [s for s in policy(configured(), ACCOUNT)["Statement"] if s["Sid"] == "Managed"]
    assert {arn.split("policy/")[1] for arn in managed["Condition"]["ArnEquals"]["iam:PolicyARN"]} == used


def test_names_that_cloudformation_makes_begin_with_the_cluster_name(configured: Configured) -> None:
    """CloudFormation cuts names that are longer than 64 characters; then the policy would not match them."""
    template = both_templates(configured())
    roles = re.findall(r"^  (\w+):\n    Type: AWS::IAM::Role$", template, re.MULTILINE)
    assert len(roles) == 5
    stacks = {role: "-data" if role == "JobRole" else "" for role in roles}
    assert all(MAX_NAME_LENGTH + len(f"{stacks[role]}-{role}-") + 12 <= 64 for role in roles)
    assert MAX_NAME_LENGTH + len("-data-bucket-") + 12 <= 63


@pytest.mark.parametrize("s3_uri", ["", "s3://my-templates/prefix"])
def test_it_fits_into_one_managed_policy(configured: Configured, s3_uri: str) -> None:
    own = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    for settings in ({}, {"kmsKeyArn": own}):
        config = configured(clusterName="a" * MAX_NAME_LENGTH, externalDNSName="paddle", **settings)
        assert len(json.dumps(policy(config, ACCOUNT, s3_uri), separators=(",", ":"))) <= 6144


def test_regions_of_china_have_their_own_partition_and_principal(configured: Configured) -> None:
    document = policy(configured(region="cn-north-1", availabilityZones=["cn-north-1a"]), ACCOUNT)
    assert "arn:aws:" not in json.dumps(document)
    (passed,) = [s for s in document["Statement"] if s["Sid"] == "PassRoles"]
    assert "ec2.amazonaws.com.cn" in passed["Condition"]["StringEquals"]["iam:PassedToService"]


@pytest.mark.usefixtures("made", "initialised")
def test_the_verb_prints_json_and_asks_for_the_account(facts: Callable[..., Any], pdj: Callable[..., str]) -> None:
    assert facts("policy")["Version"] == "2012-10-17"
    assert Aws("us-west-2").account() in json.dumps(facts("policy"))
    assert ":210987654321:" in pdj("policy", "--account-id", "210987654321")
    assert "Version: '2012-10-17'" in pdj("policy", "-o", "yaml")
