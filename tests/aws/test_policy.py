"""The least-privilege policy: enough for our requests and CloudFormation's on our behalf, and nothing more."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws.access import policy as module
from paddlejob.cloud.aws.access.policy import MAX_SIZE, policy, size
from paddlejob.cloud.aws.config.cluster import MAX_NAME_LENGTH
from paddlejob.cloud.aws.session import Aws

from .iam import permits
from .kinds import ACCOUNT, Configured, Pdj
from .requests_made import FOR_EVERYONE, in_source
from .resource_types import asked_by, matches, templates

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


def test_it_covers_what_each_resource_type_says_it_needs(configured: Configured) -> None:
    patterns = allowed(policy(configured(externalDNSName="paddle"), ACCOUNT))
    assert {action for action in asked_by(templates(configured())) if not matches(action, patterns)} == set()
    near = configured(workerInstanceType="p4d.24xlarge", efa=True)
    patterns = allowed(policy(near, ACCOUNT))
    assert {action for action in asked_by(templates(near)) if not matches(action, patterns)} == set()


def test_it_covers_every_request_in_the_source(configured: Configured) -> None:
    patterns = allowed(policy(configured(externalDNSName="paddle"), ACCOUNT, "s3://my-templates/prefix"))
    needed = in_source() - {FOR_EVERYONE}
    assert {"cloudformation:ContinueUpdateRollback", "eks:DescribeClusterVersions", "s3:PutObject"} < needed
    assert {action for action in needed if not matches(action, patterns)} == set()


def test_it_grants_no_permission_that_is_not_needed(configured: Configured) -> None:
    needed = asked_by(templates(configured())) | in_source() | ELSEWHERE
    for config in (configured(), configured(kmsKeyArn=f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1")):
        unneeded = [pattern for pattern in allowed(policy(config, ACCOUNT)) if not any_matches(pattern, needed)]
        assert unneeded == []


def any_matches(pattern: str, actions: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(action, pattern) for action in actions)


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
    names = ("paddle-cluster", "paddle-cluster-data", "paddle-cluster-attachment")
    assert by_name["Stacks"]["Resource"] == [f"{arn}/{name}/*" for name in names]
    assert by_name["Roles"]["Resource"] == [f"arn:aws:iam::{ACCOUNT}:role/paddlejob/paddle-cluster/*"]
    assert "AdministratorAccess" not in json.dumps(by_name["BoundedRoles"])
    directly = [s for s in document["Statement"] if s["Resource"] == ["*"] and "Condition" not in s]
    verbs = {action.split(":")[1] for statement in directly for action in statement["Action"]}
    assert all(verb.startswith(("Describe", "Get", "List")) for verb in verbs), "without a name, only reading"


def test_every_resource_that_is_not_named_in_full_has_its_reason(configured: Configured) -> None:
    config = configured(externalDNSName="paddle", kmsKeyArn=f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1")
    document = policy(config, ACCOUNT, "s3://my-templates/prefix")
    starred = {s["Sid"]: s["Resource"] for s in document["Statement"] if "*" in "".join(s["Resource"])}
    assert {sid for sid, resources in starred.items() if resources == ["*"]} == {
        "Look", "Resources", "Zone", "Records", "Tags",
    }  # fmt: skip
    assert [sid for sid in starred if sid not in str(module.__doc__)] == []
    assert {s["Sid"] for s in document["Statement"]} - {*starred} == {"OwnKey"}


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        # a node group of another cluster that has the name of this one
        ("eks:DeleteNodegroup", f"arn:aws:eks:us-west-2:{ACCOUNT}:nodegroup/another/paddle-cluster/1"),
        # a bucket of others with a similar name
        ("s3:DeleteObject", "arn:aws:s3:::paddle-cluster-data-lake/key"),
        # what is not needed: user data of instances, training data, transit gateways, endpoints for other accounts
        ("ec2:DescribeInstanceAttribute", "*"),
        ("ec2:GetLaunchTemplateData", "*"),
        ("s3:GetObject", "arn:aws:s3:::paddle-cluster-data-bucket-1/model"),
        ("ec2:CreateTransitGatewayRoute", "*"),
        ("ec2:ModifyVpcEndpointServicePermissions", "*"),
        ("route53:ListResourceRecordSets", "arn:aws:route53:::hostedzone/Z1"),
    ],
)
def test_what_a_star_could_have_allowed_is_denied(configured: Configured, action: str, resource: str) -> None:
    assert not permits(policy(configured(), ACCOUNT), action, resource, aws__CalledVia="cloudformation.amazonaws.com")


def test_a_cluster_is_created_through_cloudformation_only(configured: Configured) -> None:
    document = policy(configured(), ACCOUNT)
    assert permits(document, "eks:CreateCluster", "*", aws__CalledVia="cloudformation.amazonaws.com")
    assert not permits(document, "eks:CreateCluster", "*")


def test_the_managed_policies_that_may_be_attached_are_those_of_the_template(configured: Configured) -> None:
    for config in (configured(), configured(autoMode=True)):
        used = set(re.findall(r"iam::aws:policy/([\w/-]+)", templates(config)))
        (roles,) = [s for s in policy(config, ACCOUNT)["Statement"] if s["Sid"] == "BoundedRoles"]
        named = roles["Condition"]["ArnEqualsIfExists"]["iam:PolicyARN"]
        allowed_names = [arn.split("policy/")[1] for arn in named]
        assert all(matches(name, allowed_names) for name in used)
        assert all(any_matches(name, used) for name in allowed_names)
        assert all(arn.startswith("arn:aws:iam::aws:policy/Amazon") or "/service-role/" in arn for arn in named)


def test_names_that_cloudformation_makes_begin_with_the_cluster_name(configured: Configured) -> None:
    """CloudFormation cuts names that are longer than 64 characters; then the policy would not match them."""
    template = templates(configured())
    roles = re.findall(r"^  (\w+):\n    Type: AWS::IAM::Role$", template, re.MULTILINE)
    assert len(roles) == 5
    stacks = {role: "-data" if role == "JobRole" else "" for role in roles}
    assert all(MAX_NAME_LENGTH + len(f"{stacks[role]}-{role}-") + 12 <= 64 for role in roles)
    assert MAX_NAME_LENGTH + len("-data-bucket-") + 12 <= 63


REGIONS = ["us-west-2", "ap-southeast-1", "cn-northwest-1", "us-gov-west-1"]


@pytest.mark.parametrize("region", REGIONS)
def test_it_fits_into_one_managed_policy(configured: Configured, region: str) -> None:
    own = f"arn:aws:kms:{region}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    for settings in ({}, {"kmsKeyArn": own}, {"autoMode": True}):
        there = {"region": region, "availabilityZones": [f"{region}a"]}
        config = configured(clusterName="a" * MAX_NAME_LENGTH, **there, **settings)
        assert size(policy(config, ACCOUNT)) <= MAX_SIZE
        config = configured(clusterName="a" * 20, externalDNSName="paddle", **there, **settings)
        assert size(policy(config, ACCOUNT, "s3://my-templates/prefix")) <= MAX_SIZE


@pytest.mark.usefixtures("made")
def test_one_that_does_not_fit_says_what_to_do(pdj: Pdj, tmp_path: Path) -> None:
    settings = {"region": "us-gov-west-1", "availabilityZones": ["us-gov-west-1a"], "externalDNSName": "paddle"}
    nodes = {"workerInstanceType": "p4d.24xlarge", "efa": True, "clusterName": "a" * MAX_NAME_LENGTH}
    (tmp_path / "cluster.yaml").write_text(json.dumps({**settings, **nodes}))
    output = pdj("policy", "--s3-uri", "s3://my-templates/prefix", "--account-id", ACCOUNT)
    assert "and IAM allows 6144; use a shorter clusterName, or create two policies" in output


def test_regions_of_china_have_their_own_partition_and_principal(configured: Configured) -> None:
    document = policy(configured(region="cn-north-1", availabilityZones=["cn-north-1a"]), ACCOUNT)
    assert "arn:aws:" not in json.dumps(document)
    (passed,) = [s for s in document["Statement"] if s["Sid"] == "PassWorkerRoles"]
    assert "ec2.amazonaws.com.cn" in passed["Condition"]["StringEquals"]["iam:PassedToService"]


@pytest.mark.usefixtures("made", "initialised")
def test_the_verb_prints_json_and_asks_for_the_account(facts: Callable[..., Any], pdj: Pdj) -> None:
    assert facts("policy")["Version"] == "2012-10-17"
    assert Aws("us-west-2").account() in json.dumps(facts("policy"))
    assert ":210987654321:" in pdj("policy", "--account-id", "210987654321")
    assert "Version: '2012-10-17'" in pdj("policy", "-o", "yaml")
